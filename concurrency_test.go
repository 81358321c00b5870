package xstreamq_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// MaxConcurrency holds over all subscriptions, batches counting one; none starves beside one with a backlog, and none hoards.
func TestMaxConcurrency(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open(xstreamq.MaxConcurrency(2), xstreamq.SweepInterval(5*time.Second)) // a tick would wake those that wait
	var now, most atomic.Int64
	run := func() {
		n := now.Add(1)
		for {
			had := most.Load()
			if n <= had || most.CompareAndSwap(had, n) {
				break
			}
		}
		time.Sleep(30 * time.Millisecond) // too slow for anything to be read ahead
		now.Add(-1)
	}
	var mu sync.Mutex
	var seq []string
	note := func(name string) {
		run()
		mu.Lock()
		seq = append(seq, name)
		mu.Unlock()
	}
	flood, trickle, bulk := xstreamq.NewQueue[order](c, "flood"), xstreamq.NewQueue[order](c, "trickle"), xstreamq.NewQueue[order](c, "bulk")
	publish := func(q *xstreamq.Queue[order], n int) {
		if _, err := q.PublishBatch(t.Context(), make([]order, n)); err != nil {
			t.Fatal(err)
		}
	}
	publish(flood, 100)
	for name, q := range map[string]*xstreamq.Queue[order]{"flood": flood, "trickle": trickle} {
		if _, err := q.Subscribe("svc", func(context.Context, *xstreamq.Message[order]) error { note(name); return nil }, xstreamq.Concurrency(8)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := bulk.SubscribeBatch("svc", func(_ context.Context, ms []*xstreamq.Message[order]) error {
		for range ms {
			mu.Lock()
			seq = append(seq, "bulk")
			mu.Unlock()
		}
		run()
		return nil
	}, xstreamq.BatchSize(20), xstreamq.BatchWait(100*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	handled := func(n int) {
		s.eventually(func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(seq) >= n
		}, "%d handled", n)
	}
	handled(10) // the flood has all places
	publish(trickle, 10)
	publish(bulk, 100)
	handled(210)
	if n := most.Load(); n != 2 {
		t.Errorf("%d handlers ran at once, want 2", n)
	}
	last, floods := 0, 0
	for i, name := range seq {
		if name == "trickle" {
			last = i
		}
	}
	for _, name := range seq[:last] {
		if name == "flood" {
			floods++
		}
	}
	if floods > 60 {
		t.Errorf("%d of 100 of the flood came before the last of 10 of the other: it starved", floods)
	}
}

// What the cap keeps from starting goes to a worker that is free.
func TestMaxConcurrencyHoardsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open(xstreamq.MaxConcurrency(1))
	release, entered := make(chan struct{}), make(chan struct{}, 10)
	s.subscribe(c, func(context.Context, *xstreamq.Message[order]) error {
		entered <- struct{}{}
		<-release
		return nil
	}, xstreamq.Concurrency(50))
	t.Cleanup(func() { close(release) }) // before the client is closed
	s.start(c)
	s.publish(1, 1)
	receiveOne(t, entered, "the one that holds the place")
	s.publish(2, 100)
	s.eventually(func() bool { return s.load().pending > 1 }, "one is read ahead")
	time.Sleep(200 * time.Millisecond)
	if l := s.load(); l.pending > 3 { // one of each stream
		t.Errorf("%d messages are held by a worker that may start none", l.pending-1)
	}
	var runs calls
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		if m.Attempt != 1 {
			t.Errorf("attempt %d", m.Attempt)
		}
		return nil
	})
	s.eventually(func() bool { return runs.distinct() >= 98 }, "the other worker has all but one, is %d", runs.distinct())
	s.eventually(func() bool { return runs.distinct() == 99 }, "and that one too")
	if runs.total() != 99 {
		t.Errorf("%d runs", runs.total())
	}
}
