package xstreamq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// What a stream retains is handled again from where a group is moved to, as if for the first time; nobody else's group moves.
func TestReplay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	handled := func(n int) (got []string) {
		t.Helper()
		runs := make(chan xstreamq.Delivery, 100)
		c := s.open()
		_, err := s.queue(c, xstreamq.Retain(time.Hour)).Subscribe("svc", func(_ context.Context, m *xstreamq.Message[order]) error {
			runs <- m.Delivery
			return nil
		}, xstreamq.Concurrency(1))
		must(t, err)
		s.start(c)
		for _, d := range receive(t, runs, n, "runs") {
			if d.Attempt != 1 {
				t.Errorf("%s: attempt %d", d.ID, d.Attempt)
			}
			got = append(got, d.ID)
		}
		s.settled()
		if _, err := c.Admin().Stream("orders").Compact(t.Context(), false); err != nil {
			t.Error(err)
		}
		must(t, c.Stop(t.Context()))
		return got
	}
	same := func(what string, got, want []string) {
		t.Helper()
		if len(got) != len(want) || got[0] != want[0] || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	admin := s.open().Admin()
	group, other := admin.Group("orders", "svc"), admin.Group("orders", "other")
	ids := s.publish(1, 5)
	if _, err := other.Create(t.Context(), xstreamq.Tail); err != nil {
		t.Fatal(err)
	}
	same("at first", handled(5), ids)
	for what, c := range map[string]struct {
		to   xstreamq.Position
		from int
	}{"the head": {xstreamq.Head, 0}, "an id": {xstreamq.AfterID(ids[2]), 3}} {
		must(t, group.Seek(t.Context(), c.to))
		same("from "+what, handled(5-c.from), ids[c.from:])
	}
	if d, err := other.Depth(t.Context()); err != nil || d.Lag == nil || *d.Lag != 0 {
		t.Errorf("the other group: %+v, %v", d, err)
	}
	must(t, admin.Stream("orders").SetRetention(t.Context(), 0)) // what is kept no longer is trimmed, and cannot be replayed
	if res, err := admin.Stream("orders").Compact(t.Context(), false); err != nil || res.Removed != 5 {
		t.Fatalf("compacted %+v, %v", res, err)
	}
	if err := group.Seek(t.Context(), xstreamq.AfterID(ids[0])); !errors.Is(err, xstreamq.ErrTrimmed) {
		t.Errorf("seek behind what is gone: %v", err)
	}
}
