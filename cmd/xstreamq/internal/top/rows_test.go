package top

import (
	"math"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

func TestFiguresFitTheirColumns(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		0: "0", 0.24: "0.2", 9.94: "9.9", 9.96: "10", 12.3: "12", 99_999: "99999", 100_000: "100k", 999_499: "999k",
		999_500: "1M", 12_345_678: "12M", 5e9: "5G", 1e15: "huge", math.NaN(): "?",
	} {
		if got := short(v); got != want {
			t.Errorf("short(%v) = %q, want %q", v, got, want)
		}
	}
	for secs, want := range map[float64]string{0: "-", 99: "99s", 100: "1m", 7200: "2h", 3600 * 200: "8d"} {
		if got := age(secs); got != want {
			t.Errorf("age(%v) = %q, want %q", secs, got, want)
		}
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	ref := xstreamq.GroupRef{Stream: "s", Group: "g"}
	depth := func(read, lag, processed int64) []xstreamq.Depth {
		return []xstreamq.Depth{{GroupRef: ref, Read: &read, Lag: &lag, Totals: xstreamq.Totals{Processed: processed}}}
	}
	at := time.Now()
	rows, last := rated(depth(10, 5, 0), at, nil)
	if !math.IsNaN(rows[0].in) || !math.IsNaN(rows[0].out) {
		t.Errorf("a rate of one reading: %v %v", rows[0].in, rows[0].out)
	}
	rows, last = rated(depth(20, 15, 0), at.Add(2*time.Second), last)
	if rows[0].in != 10 || rows[0].out != 5 {
		t.Errorf("in %v out %v, want 10 and 5", rows[0].in, rows[0].out)
	}
	rows, last = rated(depth(20, 15, 8), at.Add(4*time.Second), last)
	if rows[0].in != 0 || rows[0].out != 4 {
		t.Errorf("in %v out %v, want 0 and 4", rows[0].in, rows[0].out)
	}
	rows, _ = rated(depth(0, 3, 0), at.Add(6*time.Second), last) // a seek, or another server
	if !math.IsNaN(rows[0].in) || !math.IsNaN(rows[0].out) {
		t.Errorf("a rate of a count that went back: %v %v", rows[0].in, rows[0].out)
	}
}
