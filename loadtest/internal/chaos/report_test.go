package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
)

// passed is a report within all bounds of its profile.
func passed() (*Report, *Profile) {
	lag := int64(0)
	r := &Report{
		Faults:  map[Kind]int{Kill: 3},
		Verdict: &ledger.Verdict{Confirmed: 100, Dead: 5, DeadPlanned: 5, Findings: map[string]*ledger.Finding{}},
		Depth:   xstreamq.Depth{Lag: &lag, Dead: 5}, Kills: 3, Held: 100, Again: 1, Workers: 4, LogLines: 9,
		Length: 10 * time.Second, Drain: time.Second, Newcomers: 10, CPU: 0.1,
		Recovery: ledger.Times{Max: time.Second}, Resume: ledger.Times{Max: time.Second},
	}
	p := &Profile{
		Messages: 100, Workers: 2, Faults: []Fault{{Kind: Kill}},
		Bounds: Bounds{Repeats: 0.02, Recovery: 2 * time.Second, Resume: 2 * time.Second, Drain: 2 * time.Second, CPU: 0.2, LogLines: 10, Newcomers: 10},
	}
	return r, p
}

func TestBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		wrong func(*Report, *Profile)
		want  string // part of the only complaint; "" = none
	}{
		{"passed", func(*Report, *Profile) {}, ""},
		{"finding", func(r *Report, _ *Profile) { r.Verdict.Findings[ledger.LostKind] = &ledger.Finding{Count: 2} }, "lost: 2"},
		{"beside", func(r *Report, _ *Profile) { r.Verdict.Findings[ledger.BesideKind] = &ledger.Finding{Count: 2} }, "ran beside: 2"},
		{"beside, admitted", func(r *Report, p *Profile) {
			p.Bounds.Beside = true
			r.Verdict.Findings[ledger.BesideKind] = &ledger.Finding{Count: 2}
		}, ""},
		{"too few", func(r *Report, _ *Profile) { r.Verdict.Confirmed = 99 }, "99 messages confirmed"},
		{"dead", func(r *Report, _ *Profile) { r.Verdict.DeadPlanned = 6 }, "planned are 6"},
		{"depth of the dead", func(r *Report, _ *Profile) { r.Depth.Dead = 4 }, "counts 4 dead letters"},
		{"lag", func(r *Report, _ *Profile) { *r.Depth.Lag = 1 }, "lag 1"},
		{"lag unknown", func(r *Report, _ *Profile) { r.Depth.Lag = nil }, "lag is unknown"},
		{"pending", func(r *Report, _ *Profile) { r.Depth.Pending = 1 }, "pending 1"},
		{"retry", func(r *Report, _ *Profile) { r.Depth.Retry = 1 }, "retry 1"},
		{"retrying", func(r *Report, _ *Profile) { r.Depth.Retrying = 1 }, "retrying 1"},
		{"consumers", func(r *Report, _ *Profile) { r.Remains.Consumers = 3 }, "3 consumers and 0 lease records of 2 workers"},
		{"records", func(r *Report, _ *Profile) { r.Remains.Records = 3 }, "0 consumers and 3 lease records"},
		{"keys", func(r *Report, _ *Profile) { r.Remains.Unknown = []string{"lock"} }, "lock"},
		{"connections", func(r *Report, _ *Profile) { r.Remains.Conns = 200 }, "200 connections"},
		{"no samples", func(_ *Report, p *Profile) { p.Sample = true }, "too few samples"},
		{"goroutines", func(r *Report, _ *Profile) { r.Sampled, r.Growth = true, Growth{Goroutines: 10, GoroutinesEnd: 12} }, "grew"},
		{"heap", func(r *Report, _ *Profile) { r.Sampled, r.Growth = true, Growth{Heap: 100, HeapEnd: 111} }, "grew"},
		{"connections kept", func(r *Report, _ *Profile) { r.Sampled, r.Growth = true, Growth{Conns: 20, ConnsEnd: 23} }, "grew"},
		{"keys kept", func(r *Report, _ *Profile) {
			r.Sampled, r.Growth = true, Growth{Keys: []string{"a"}, KeysEnd: []string{"a", "b"}}
		}, "other keys"},
		{"markers kept", func(r *Report, p *Profile) {
			p.For, p.Dedupe, r.Sampled, r.Growth = time.Minute, time.Second, true, Growth{Markers: 100, MarkersEnd: 111}
		}, "markers grew"},
		{"markers that live longer", func(r *Report, p *Profile) {
			p.For, p.Dedupe, r.Sampled, r.Growth = time.Minute, time.Hour, true, Growth{Markers: 100, MarkersEnd: 500}
		}, ""},
		{"no growth", func(r *Report, _ *Profile) {
			r.Sampled, r.Growth = true, Growth{10, 11, 100, 110, 20, 22, 50, 55, nil, nil}
		}, ""},
		{"no fault", func(r *Report, _ *Profile) { r.Faults = map[Kind]int{} }, "no kill happened"},
		{"repeats", func(r *Report, _ *Profile) { r.Again = 3 }, "3 second runs of 100"},
		{"repeats, no bound", func(r *Report, p *Profile) { r.Again, p.Bounds.Repeats = 3, -1 }, ""},
		{"once", func(r *Report, p *Profile) { r.Verdict.Second, p.Bounds.Once = 1, true }, "1 second runs"},
		{"recovery", func(r *Report, _ *Profile) { r.Recovery.Max = 3 * time.Second }, "recovery after a kill took 3s"},
		{"resume", func(r *Report, _ *Profile) { r.Resume.Max = 3 * time.Second }, "after an outage took 3s"},
		{"drain", func(r *Report, _ *Profile) { r.Drain = 3 * time.Second }, "the drain took 3s"},
		{"newcomers", func(r *Report, _ *Profile) { r.Newcomers = 9 }, "9 runs by workers"},
		{"cpu", func(r *Report, _ *Profile) { r.CPU = 0.3 }, "30 % of a core"},
		{"log", func(r *Report, _ *Profile) { r.LogLines = 60 }, "60 log lines"},
		{"trouble", func(r *Report, _ *Profile) { r.Trouble = []string{"worker 1.1 ended by itself"} }, "1.1 ended by itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, p := passed()
			c.wrong(r, p)
			r.hold(p)
			if c.want == "" && len(r.Broken) > 0 || c.want != "" && (len(r.Broken) != 1 || !strings.Contains(r.Broken[0], c.want)) {
				t.Errorf("%q, want %q", r.Broken, c.want)
			}
		})
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	var list []ledger.Sample
	for i := range int64(60) {
		list = append(list, ledger.Sample{At: i, Goroutines: 20 + i%3, Heap: 1000 + 50*i})
	}
	var stock []Remains
	for i := range 60 {
		stock = append(stock, Remains{Conns: 30 - i%6, Markers: map[string]int{"x": i, "y": 1}, Keys: []string{"a", string(rune('b' + i/50))}})
	}
	g, ok := growth(list, stock)
	want := Growth{20, 20, 1500, 3700, 30, 30, 16, 60, []string{"a", "b"}, []string{"a", "c"}}
	if !ok || fmt.Sprint(g) != fmt.Sprint(want) {
		t.Errorf("%+v, %v; want %+v", g, ok, want)
	}
	if _, ok := growth(list[:12], stock); ok {
		t.Error("12 samples say nothing about growth")
	}
	if _, ok := growth(list, stock[:12]); ok {
		t.Error("12 looks at the server say nothing about growth")
	}
}

// The last line is JSON and says whether the trial was passed.
func TestPrint(t *testing.T) {
	t.Parallel()
	for _, ok := range []bool{true, false} {
		r, p := passed()
		if !ok {
			r.Verdict.Findings[ledger.LostKind] = &ledger.Finding{Count: 1, Examples: []string{"message 7"}}
		}
		r.hold(p)
		var out bytes.Buffer
		if err := r.Print(&out); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		var got struct {
			OK     bool
			Lost   int
			Broken []string
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
			t.Fatal(err)
		}
		if got.OK != ok || got.Lost == 0 != ok || len(got.Broken) == 0 != ok || strings.Contains(out.String(), "lost: message 7") == ok {
			t.Errorf("passed %v, and it prints\n%s", ok, &out)
		}
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	const second = int64(time.Second)
	b := ledger.NewBook()
	for name, rows := range map[string]string{
		"1": "S 1 10000000000 1 1 0 1-1\nE 1 10100000000 ok\nS 2 10000000000 2 1 0 2-1\n",
		"2": "S 1 30000000000 3 1 0 3-1\nE 1 30100000000 ok\n",
		"3": "S 1 13000000000 1 1 1 1-1\nE 1 13100000000 ok\nS 2 14000000000 2 1 2 2-1\nE 2 14100000000 ok\nS 3 35000000000 3 1 1 3-1\nE 3 35100000000 ok\n",
	} {
		if err := b.Worker(name, strings.NewReader(rows)); err != nil {
			t.Fatal(err)
		}
	}
	r := &Report{Outages: []Outage{
		{Kind: Full, Span: ledger.Span{From: 30 * second, To: 34*second + second/2}},
		{Kind: Freeze, Span: ledger.Span{From: 90 * second, To: 91 * second}},
	}}
	deaths := []Death{{"1", 11 * second, 2}, {"2", 31 * second, 50}, {"9", 12 * second, -1}}
	r.measure(b, map[string]int64{"1": 0, "2": 29 * second, "3": 30 * second}, deaths, ledger.Span{})
	if r.Kills != 1 || r.Held != 2 || r.Again != 1 {
		t.Errorf("%d kills, %d held, %d again; want 1, 2, 1: the second was in an outage", r.Kills, r.Held, r.Again)
	}
	if r.Recovery.Max != 2*time.Second || r.Recovery.Count != 1 || r.RecoveryLater.Max != 3*time.Second {
		t.Errorf("recovery %+v, later %+v", r.Recovery, r.RecoveryLater)
	}
	if want := []time.Duration{time.Second / 2}; r.Resume.Count != 1 || !slices.Contains(want, r.Resume.Max) {
		t.Errorf("resumed %+v, want %v: nothing started after the second outage", r.Resume, want)
	}
	if r.Newcomers != 2 {
		t.Errorf("%d runs of newcomers, want the 2 of worker 3 before the outage's end", r.Newcomers)
	}
}
