package growth

import (
	"fmt"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/speed"
)

// What an axis is held to.
const (
	MostTimes   = 1.5
	MostCommand = 5 * time.Millisecond
)

// Row is one axis.
type Row struct {
	Name    string
	Bytes   bool // At are sizes
	At      []int
	Publish Curve
	Drain   Curve
	Longest time.Duration // command at any point, in the best of its rounds or at rest; 0 = under a millisecond
	Which   string
	Control time.Duration // the longest plain command, in the best of the rounds
}

// Curve is what a message cost at each point.
type Curve struct {
	Micros []float64 // medians of the rounds
	Times  float64   // the largest point beside the smallest: the median of the rounds' ratios
}

// Pass says that a message costs about the same at the largest point, and that no command was long but for the machine.
func (r Row) Pass() bool {
	return r.Publish.Times <= MostTimes && r.Drain.Times <= MostTimes && !r.TooLong()
}

// TooLong says that a command held the server up, and that it was not the machine.
func (r Row) TooLong() bool { return r.Longest > MostCommand && r.Longest > r.Control }

func (a axis) judge(s samples) Row {
	r := Row{Name: a.name, Bytes: a.bytes, At: a.at, Publish: curve(s.publish), Drain: curve(s.drain), Control: least(s.control).took}
	for i, rounds := range s.longest {
		for _, c := range []command{least(rounds), s.rest[i]} {
			if c.took > r.Longest {
				r.Longest, r.Which = c.took, c.what
			}
		}
	}
	return r
}

func curve(points [][]float64) Curve {
	c := Curve{}
	for _, rounds := range points {
		c.Micros = append(c.Micros, speed.Median(rounds))
	}
	first, last := points[0], points[len(points)-1]
	ratios := make([]float64, len(first))
	for i := range ratios {
		ratios[i] = last[i] / first[i]
	}
	c.Times = speed.Median(ratios)
	return c
}

func least(rounds []command) command {
	out := rounds[0]
	for _, c := range rounds {
		if c.took < out.took {
			out = c
		}
	}
	return out
}

// Markdown is the table for the page.
func Markdown(rows []Row) string {
	var b strings.Builder
	b.WriteString("| axis | points | publish, µs | | drain, µs | | longest command | a control's | |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range rows {
		verdict := "pass"
		if !r.Pass() {
			verdict = "**fail**"
		}
		longest := span(r.Longest)
		if r.Longest > MostCommand {
			longest += ", " + r.Which
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f × | %s | %.2f × | %s | %s | %s |\n", r.Name, join(r.At, func(n int) string { return label(n, r.Bytes) }),
			join(r.Publish.Micros, micro), r.Publish.Times, join(r.Drain.Micros, micro), r.Drain.Times, longest, span(r.Control), verdict)
	}
	return b.String()
}

func join[T any](list []T, text func(T) string) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = text(v)
	}
	return strings.Join(out, ", ")
}

func span(d time.Duration) string {
	if d < logged {
		return "< 1 ms"
	}
	return fmt.Sprintf("%.1f ms", d.Seconds()*1000)
}

func micro(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// label of a point, short enough for an axis.
func label(n int, bytes bool) string {
	step, units := 1000, []string{"", "k", "M"}
	if bytes {
		step, units = 1024, []string{" B", " KiB", " MiB"}
	}
	i := 0
	for ; i < len(units)-1 && n >= step && n%step == 0; i++ {
		n /= step
	}
	return fmt.Sprint(n) + units[i]
}
