package xstreamq_test

import (
	"context"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// A worker that starts while the memory is full drains the backlog, though the registry cannot take its group; once there is
// room it does.
func TestStartInFullMemory(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	ids := s.publish(1, 50)
	limit := func(most string) {
		t.Helper()
		if err := s.rdb.ConfigSet(t.Context(), "maxmemory", most).Err(); err != nil {
			t.Fatal(err)
		}
	}
	limit("1")
	var runs calls
	began := make(chan struct{}, 100)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		began <- struct{}{}
		return nil
	}, xstreamq.VisibilityTimeout(2*time.Second))
	receive(t, began, 50, "the backlog is handled")
	s.settled()
	runs.each(t, ids, 1)
	registry := s.prefix + keys.Registry
	if n := s.rdb.SCard(t.Context(), registry).Val(); n != 0 {
		t.Errorf("%d in the registry, in a full memory", n)
	}
	limit("0")
	s.eventually(func() bool { return s.rdb.SCard(t.Context(), registry).Val() == 2 }, "stream and group are in the registry")
}
