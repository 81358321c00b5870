package xstreamq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

func TestExponential(t *testing.T) {
	t.Parallel()
	steady := xstreamq.Exponential{Initial: time.Second, Max: 10 * time.Second, Jitter: -1}
	for attempt, want := range []float64{1, 1, 2, 4, 8, 10, 10} {
		if got := steady.Delay(attempt, nil); got.Seconds() != want {
			t.Errorf("attempt %d waits %v, want %v s", attempt, got, want)
		}
	}
	var jittered xstreamq.Exponential
	least, most := time.Duration(1<<62), time.Duration(0)
	for range 1000 {
		d := jittered.Delay(20, nil)
		least, most = min(least, d), max(most, d)
	}
	if least < 5*time.Minute || most > 6*time.Minute || most-least < 40*time.Second {
		t.Errorf("capped delays lie between %v and %v, want 5 to 6 minutes", least, most)
	}
	start := time.Now()
	slow := xstreamq.Exponential{Initial: time.Second, Multiplier: 1, Jitter: -1}
	if d := slow.Delay(999_999_999, nil); d != time.Second || time.Since(start) > time.Second {
		t.Errorf("a billionth attempt waits %v, found in %v", d, time.Since(start))
	}
	if d := (xstreamq.Exponential{Initial: time.Hour, Max: 1 << 62, Jitter: -1}).Delay(1000, nil); d != 30*24*time.Hour {
		t.Errorf("a cap beyond all bounds gives %v, want 30 days", d)
	}
}

// A backoff of the user's own is held to what a queue can wait; its panic is no handler's fault.
func TestOddBackoffs(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]struct {
		backoff xstreamq.BackoffFunc
		want    time.Duration
	}{
		"negative": {func(int, error) time.Duration { return -time.Hour }, 0},
		"huge":     {func(int, error) time.Duration { return 1<<63 - 1 }, 30 * 24 * time.Hour},
		"panic":    {func(int, error) time.Duration { panic("no") }, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			before := s.serverTime()
			s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
				if m.Attempt > 1 {
					return xstreamq.Reject(errors.New("seen again"))
				}
				return errors.New("no")
			}, xstreamq.WithBackoff(b.backoff))
			s.publish(1, 1)
			if b.want == 0 {
				s.dead(1) // at once
				return
			}
			if _, due := s.parkedOnly(); due.Sub(before) < b.want-time.Millisecond || due.Sub(before) > b.want+patience {
				t.Errorf("waits %v, want %v", due.Sub(before), b.want)
			}
		})
	}
}
