package dash

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xstreamq/xstreamq"
)

// One sampler asks, however many look; it starts with the first and ends, after a while, with the last.
func TestSamplerRunsWhileSomebodyLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		s := newSampler(t.Context(), func(context.Context) ([]xstreamq.Depth, error) {
			asked.Add(1)
			return []xstreamq.Depth{{GroupRef: xstreamq.GroupRef{Stream: "a", Group: "b"}}}, nil
		}, time.Second)
		time.Sleep(time.Minute)
		if asked.Load() != 0 {
			t.Fatal("nobody looks, and it asks")
		}
		var leave []func()
		for range 50 {
			leave = append(leave, s.join())
		}
		time.Sleep(10*time.Second + 500*time.Millisecond)
		if n := asked.Load(); n != 11 {
			t.Errorf("50 viewers made it ask %d times in ten seconds, want 11", n)
		}
		if n := len(s.points(xstreamq.GroupRef{Stream: "a", Group: "b"}, 1000)); n != 11 {
			t.Errorf("%d points", n)
		}
		for _, f := range leave {
			f()
		}
		time.Sleep(linger + time.Second)
		before := asked.Load()
		time.Sleep(time.Hour)
		if asked.Load() != before {
			t.Error("nobody looks any more, and it asks")
		}
		defer s.join()()
		if snap, err := s.current(t.Context()); err != nil || time.Since(snap.At) > time.Second {
			t.Errorf("a new viewer is shown the state of an hour ago: %v, %v", snap, err)
		}
	})
}

// A slow server is asked less often, and history and its groups are bounded.
func TestSamplerIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		s := newSampler(t.Context(), func(context.Context) ([]xstreamq.Depth, error) {
			n := asked.Add(1)
			time.Sleep(time.Second)
			all := make([]xstreamq.Depth, 1200)
			for i := range all {
				all[i].GroupRef = xstreamq.GroupRef{Stream: "a", Group: string(rune('a' + i))}
			}
			if n > 200 {
				all = all[:1]
			}
			return all, nil
		}, time.Second)
		defer s.join()()
		time.Sleep(95 * time.Second)
		if n := asked.Load(); n != 10 {
			t.Errorf("asked %d times in 95 s, each takes one: want 10", n)
		}
		groups := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.past)
		}
		if n := groups(); n != groupsMost {
			t.Errorf("history of %d groups", n)
		}
		time.Sleep(30 * time.Minute)
		if n := len(s.points(xstreamq.GroupRef{Stream: "a", Group: "a"}, 1000)); n != historyMost {
			t.Errorf("%d points are kept", n)
		}
		time.Sleep(30 * time.Minute)
		if n := groups(); n != 1 {
			t.Errorf("history of %d groups is kept, one is there", n)
		}
	})
}

func TestSamplerKeepsWhatWasKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fail := errors.New("down")
		var down atomic.Bool
		s := newSampler(t.Context(), func(context.Context) ([]xstreamq.Depth, error) {
			if down.Load() {
				return nil, fail
			}
			return make([]xstreamq.Depth, 3), nil
		}, time.Second)
		defer s.join()()
		good, _ := s.current(t.Context())
		down.Store(true)
		bad, _ := s.next(t.Context(), good)
		worse, _ := s.next(t.Context(), bad)
		if !errors.Is(worse.Err, fail) || len(worse.Rows) != 3 || !worse.At.Equal(good.At) || !worse.ErrSince.Equal(bad.ErrSince) {
			t.Errorf("%+v", worse)
		}
		down.Store(false)
		healed, _ := s.next(t.Context(), worse)
		if healed.Err != nil || !healed.At.After(good.At) {
			t.Errorf("%+v", healed)
		}
	})
}

func TestRates(t *testing.T) {
	t.Parallel()
	s := newSampler(t.Context(), nil, time.Second)
	s.rateOver = 1
	at := time.Now()
	sample := func(lag, pending, dead, done int64) (in, out float64) {
		at = at.Add(2 * time.Second)
		r := xstreamq.Depth{Lag: &lag, Pending: pending, Dead: dead, Totals: xstreamq.Totals{Processed: done}}
		if lag < 0 {
			r.Lag = nil
		}
		in, out = -1, -1
		i, o := s.rates(r, at)
		if i != nil {
			in = *i
		}
		if o != nil {
			out = *o
		}
		return in, out
	}
	for n, c := range []struct {
		lag, pending, dead, done int64
		in, out                  float64
	}{
		{10, 0, 0, 0, -1, -1}, // the first tells nothing
		{10, 0, 0, 0, 0, 0},   // idle
		{20, 0, 0, 0, 5, 0},   // ten came
		{10, 4, 0, 6, 0, 3},   // six done, four in flight
		{10, 2, 2, 16, 5, 5},  // ten came, ten done, two died
		{-1, 2, 2, 18, -1, 1}, // the lag is not known
		{10, 2, 2, 18, -1, 0}, // nor was it before
		{10, 2, 0, 18, 0, 0},  // a purge
		{10, 2, 0, 0, -1, -1}, // the group was made anew
	} {
		if in, out := sample(c.lag, c.pending, c.dead, c.done); in != c.in || out != c.out {
			t.Errorf("sample %d: in %v out %v, want %v and %v", n, in, out, c.in, c.out)
		}
	}
}
