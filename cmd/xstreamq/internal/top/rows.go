package top

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
)

// row is one group, and what went in and out a second since the reading before; NaN = not known.
type row struct {
	xstreamq.Depth
	in, out float64
}

type reading struct {
	d  xstreamq.Depth
	at time.Time
}

// rated compares with the readings before. A count that went back, after a seek or on another server, tells no rate.
func rated(depths []xstreamq.Depth, at time.Time, before map[xstreamq.GroupRef]reading) ([]row, map[xstreamq.GroupRef]reading) {
	rows, last := make([]row, len(depths)), make(map[xstreamq.GroupRef]reading, len(depths))
	for i, d := range depths {
		rows[i] = row{Depth: d, in: math.NaN(), out: math.NaN()}
		last[d.GroupRef] = reading{d, at}
		b, ok := before[d.GroupRef]
		secs := at.Sub(b.at).Seconds()
		if !ok || secs <= 0 {
			continue
		}
		counted := d.Read != nil && b.d.Read != nil
		if done := d.Totals.Processed - b.d.Totals.Processed; d.Totals.Processed > 0 || !counted {
			rows[i].out = rate(done, secs)
		} else { // a group of others, or nothing handled yet
			rows[i].out = rate(*d.Read-*b.d.Read, secs)
		}
		if counted && d.Lag != nil && b.d.Lag != nil {
			rows[i].in = rate(*d.Read+*d.Lag-*b.d.Read-*b.d.Lag, secs)
		}
	}
	return rows, last
}

func rate(n int64, secs float64) float64 {
	if n < 0 {
		return math.NaN()
	}
	return float64(n) / secs
}

// column is one figure of a row.
type column struct {
	name  string
	title string
	width int
	keep  int // a narrow terminal shows those with the least
	value func(row) float64
	text  func(float64) string
}

var columns = []column{
	{name: "name"},
	{"in", "IN/s", 5, 4, func(r row) float64 { return r.in }, short},
	{"out", "OUT/s", 6, 5, func(r row) float64 { return r.out }, short},
	{"lag", "LAG", 5, 1, func(r row) float64 {
		if r.Lag == nil {
			return math.NaN()
		}
		return float64(*r.Lag)
	}, short},
	{"flight", "FLIGHT", 7, 3, func(r row) float64 { return float64(r.Pending) }, short},
	{"retry", "RETRY", 6, 6, func(r row) float64 { return float64(r.Retry + r.Retrying) }, short},
	{"delayed", "DELAY", 6, 8, func(r row) float64 { return float64(r.Delayed) }, short},
	{"dead", "DEAD", 5, 2, func(r row) float64 { return float64(r.Dead) }, short},
	{"cons", "CONS", 5, 9, func(r row) float64 { return float64(r.Consumers) }, short},
	{"oldest", "OLDEST", 7, 7, func(r row) float64 { return r.Oldest.Seconds() }, age},
}

// Columns are the names to sort by.
func Columns() []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

func columnIndex(name string) int {
	return slices.IndexFunc(columns, func(c column) bool { return c.name == name })
}

// chosen are the rows that the filter keeps, in order: figures from the largest, what is not known last.
func (m *model) chosen() []row {
	var out []row
	for _, r := range m.rows {
		if strings.Contains(strings.ToLower(r.Stream+"/"+r.Group), strings.ToLower(m.filter)) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b row) int {
		c := 0
		if v := columns[m.sort].value; v != nil {
			x, y := v(a), v(b)
			if math.IsNaN(x) || math.IsNaN(y) {
				return cmp.Compare(y, x) // NaN is less than any
			}
			c = cmp.Compare(y, x)
		}
		if c == 0 {
			c = cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Group, b.Group))
		}
		if m.reverse {
			return -c
		}
		return c
	})
	return out
}

// short writes a figure in five characters at most.
func short(v float64) string {
	if math.IsNaN(v) {
		return "?"
	}
	if v < 9.95 && v != math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	if v < 99_999.5 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	for _, unit := range []string{"k", "M", "G"} {
		if v /= 1000; v < 999.5 {
			return strconv.FormatFloat(v, 'f', 0, 64) + unit
		}
	}
	return "huge"
}

func age(secs float64) string {
	d := time.Duration(secs * float64(time.Second))
	switch {
	case d <= 0:
		return "-"
	case d < 100*time.Second:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < 100*time.Minute:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 100*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + "d"
}
