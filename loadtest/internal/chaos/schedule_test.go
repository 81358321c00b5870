package chaos

import (
	"slices"
	"testing"
	"time"
)

func TestSchedule(t *testing.T) {
	t.Parallel()
	for _, p := range Profiles() {
		a, b, other := p.Schedule(1), p.Schedule(1), p.Schedule(2)
		if !slices.Equal(a, b) {
			t.Errorf("%s: one seed, two schedules", p.Name)
		}
		if slices.Equal(a, other) {
			t.Errorf("%s: two seeds, one schedule", p.Name)
		}
		seen := map[Kind]int{}
		last := time.Duration(0)
		for _, e := range a {
			if e.At < last || e.At+e.Lasts > p.For {
				t.Errorf("%s: %s at %v for %v, after one at %v", p.Name, e.Kind, e.At, e.Lasts, last)
			}
			last = e.At
			seen[e.Kind]++
		}
		for _, f := range p.Faults {
			want := 1
			if f.Every > 0 {
				want = int((p.For - f.First - f.Lasts) / f.Every)
			}
			if got := seen[f.Kind]; got < want || got > want+2 {
				t.Errorf("%s: %d of %s, want about %d", p.Name, got, f.Kind, want)
			}
		}
		// The faults shall fall while there is something to do.
		if publishing := time.Duration(p.Messages) * time.Second / time.Duration(p.Rate); publishing < p.For*3/4 && p.Name != "full" {
			t.Errorf("%s: publishes for %v, breaks for %v", p.Name, publishing, p.For)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	if p, err := Find("kills"); err != nil || p.Messages != 200_000 || p.Workers != 6 || p.Fail != 25 || p.MaxRetries != 3 || p.Faults[0] != (Fault{Kind: Kill, First: time.Second, Every: 400 * time.Millisecond}) {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := Find("nothing"); err == nil {
		t.Error("a profile of no name")
	}
}
