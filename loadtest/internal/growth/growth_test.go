package growth

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/speed"
)

func two(first, last []float64) [][]float64 { return [][]float64{first, last} }

func found() samples {
	return samples{
		publish: two([]float64{10, 10, 10}, []float64{14, 90, 12}), // one bad round does not decide
		drain:   two([]float64{10, 50, 10}, []float64{14, 70, 13}),
		longest: [][]command{
			{{7 * time.Millisecond, "bad"}, {0, ""}, {8 * time.Millisecond, "bad"}},
			{{9 * time.Millisecond, "bad"}, {2 * time.Millisecond, "xack"}, {3 * time.Millisecond, "bad"}},
		},
		rest:    []command{{0, ""}, {time.Millisecond, "evalsha"}},
		control: []command{{4 * time.Millisecond, "xrange"}, {6 * time.Millisecond, "xrange"}, {9 * time.Millisecond, "xrange"}},
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	a := axis{name: "a & b", at: []int{1, 1000}}
	r := a.judge(found())
	if !r.Pass() || r.Publish.Times != 1.4 || r.Drain.Times != 1.4 || r.Publish.Micros[1] != 14 || r.Drain.Micros[0] != 10 {
		t.Errorf("wrong: %+v", r)
	}
	if r.Longest != 2*time.Millisecond || r.Which != "xack" || r.Control != 4*time.Millisecond {
		t.Errorf("longest of the best rounds: %+v", r)
	}
	for name, spoil := range map[string]func(*samples){
		"publish grows":    func(s *samples) { s.publish[1] = []float64{16, 16, 16} },
		"drain grows":      func(s *samples) { s.drain[1] = []float64{16, 80, 16} },
		"a script at rest": func(s *samples) { s.rest[0].took = 6 * time.Millisecond },
		"a command in each round": func(s *samples) {
			for i := range s.longest[1] {
				s.longest[1][i] = command{6 * time.Millisecond, "evalsha on {growth0}"}
			}
		},
	} {
		s := found()
		spoil(&s)
		if r := a.judge(s); r.Pass() || !strings.Contains(Markdown([]Row{r}), "**fail**") {
			t.Errorf("%s: it passes: %+v", name, r)
		}
	}
	s := found()
	for i := range s.longest[1] {
		s.longest[1][i], s.control[i].took = command{6 * time.Millisecond, "xack"}, 7*time.Millisecond
	}
	if r := a.judge(s); !r.Pass() {
		t.Errorf("plain commands took as long: %+v", r)
	}
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	r := axis{name: "body", bytes: true, at: []int{16, 1 << 20}}.judge(found())
	want := "| body | 16 B, 1 MiB | 10.0, 14.0 | 1.40 × | 10.0, 14.0 | 1.40 × | 2.0 ms | 4.0 ms | pass |\n"
	if got := Markdown([]Row{r}); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s", got)
	}
}

func TestLabel(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "1", 200: "200", 4096: "4096", 10_000: "10k", 1e7: "10M"} {
		if got := label(n, false); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	if got := label(4096, true); got != "4 KiB" {
		t.Error(got)
	}
}

func TestDraw(t *testing.T) {
	t.Parallel()
	rows := []Row{axis{name: "a & b", at: []int{1, 1000}}.judge(found()), axis{name: "body", bytes: true, at: []int{16, 1 << 20}}.judge(found())}
	rows[1].Drain.Micros[1] = 10_000
	svg := Draw(rows)
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("no XML: %v\n%s", err, svg)
		}
	}
	for _, want := range []string{"a &amp; b", "prefers-color-scheme:dark", "publish at 1k: 14.0 µs", "drain at 1 MiB: 10000 µs", ">µs, log<", ">10000<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
	if n := strings.Count(svg, "<circle"); n != 5 { // two a row, and the key's
		t.Errorf("%d points of publish", n)
	}
}

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, high := range []float64{0.7, 1, 3, 9.9, 10, 14, 21, 49, 99, 1234} {
		ticks, y := linear(high)
		if len(ticks) < 3 || len(ticks) > 6 || ticks[len(ticks)-1] < high || y(0) != above+plotH || y(high) < above {
			t.Errorf("up to %g: %v", high, ticks)
		}
	}
	ticks, y := logarithmic(12, 1800)
	if len(ticks) != 4 || y(10) != above+plotH || y(10_000) != above {
		t.Errorf("from 12 to 1800: %v", ticks)
	}
}

// Every axis at points that are small: what lies about is there at the end, and each figure was taken.
func TestAlong(t *testing.T) {
	t.Parallel()
	for _, a := range axes {
		a.at = []int{1, 3}
		if a.load(2).lying == 2 {
			a.at = []int{10, 1100} // more than one step of the fillers
		}
		s, err := along(t.Context(), Options{Rounds: 1, Messages: 200, Say: t.Logf}, a)
		if err != nil {
			t.Errorf("%s: %v", a.name, err)
			continue
		}
		r := a.judge(s)
		if len(r.Drain.Micros) != 2 || r.Publish.Micros[0] <= 0 || r.Drain.Micros[1] <= 0 {
			t.Errorf("%s: %+v", a.name, r)
		}
	}
}

func TestWhatLayAboutMustStay(t *testing.T) {
	t.Parallel()
	l := usual()
	l.fill, l.lying = speed.Parked, 5
	p, err := prepare(t.Context(), l, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}()
	if err := p.check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := p.rdb.HDel(t.Context(), "{growth0}.g.parked", "m/3-1").Err(); err != nil {
		t.Fatal(err)
	}
	if p.check(t.Context()) == nil {
		t.Error("one of five is gone, and nobody noticed")
	}
}
