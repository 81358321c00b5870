package xstreamq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// A group's totals: successes, failed attempts, dead letters, each counted once, those of the last second with the stop.
func TestTotals(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	group := c.Admin().Group("orders", "svc")
	if _, err := group.Totals(t.Context()); !errors.Is(err, xstreamq.ErrNotFound) {
		t.Errorf("before the group exists: %v", err)
	}
	sub := s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		switch {
		case m.Body.ID == 1:
			return xstreamq.Reject(errFailed)
		case m.Body.ID == 2, m.Body.ID == 3 && m.Attempt == 1:
			return errFailed
		case m.Body.ID == 4 && m.Raw[0] == '{' && m.EntryID == m.ID:
			return xstreamq.Snooze(time.Millisecond)
		}
		return nil
	}, xstreamq.MaxRetries(1))
	s.publish(1, 10)
	s.add("nobody", "") // dead without an attempt
	s.start(c)
	want := xstreamq.Totals{Processed: 8, Failed: 1 + 2 + 1, Dead: 3}
	s.eventually(func() bool {
		got, err := group.Totals(t.Context())
		return err == nil && got == want
	}, "%+v", want)

	s.publish(11, 15)
	s.settled()
	if err := sub.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	want.Processed += 5
	if got, err := group.Totals(t.Context()); err != nil || got != want {
		t.Errorf("after the stop: %+v, %v, want %+v", got, err, want)
	}
}

var errFailed = errors.New("it failed")
