package xstreamq_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// Retries and new work share a worker: neither waits for the other's end.
func TestNeitherRetriesNorNewWorkStarve(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	at := make(chan int, 100000)
	c := s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID == 1 { // for ever, at once
			return errors.New("no")
		}
		if m.Body.ID == 3 && m.Attempt == 1 {
			return errors.New("once")
		}
		at <- m.Body.ID
		return nil
	}, xstreamq.RetryForever(), xstreamq.Concurrency(8))
	q := s.queue(c)
	failing := make([]order, 2000)
	for i := range failing {
		failing[i].ID = 1
	}
	if _, err := q.PublishBatch(t.Context(), failing); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() bool { l := s.load(); return l.parked+l.retry > 1000 }, "a crowd that fails again and again")
	start := time.Now()
	fresh := make([]order, 10)
	for i := range fresh {
		fresh[i].ID = 2
	}
	if _, err := q.PublishBatch(t.Context(), fresh); err != nil {
		t.Fatal(err)
	}
	receive(t, at, 10, "new work beside the crowd")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("new work took %v beside failing work", took)
	}

	s = newSite(t)
	c = s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID == 3 && m.Attempt == 1 {
			return errors.New("once")
		}
		if m.Body.ID == 3 {
			at <- 3
		}
		time.Sleep(200 * time.Microsecond)
		return nil
	}, xstreamq.Concurrency(2))
	q = s.queue(c)
	if _, err := q.Publish(t.Context(), order{3}); err != nil {
		t.Fatal(err)
	}
	flood := make([]order, 20000)
	if _, err := q.PublishBatch(t.Context(), flood); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	receiveOne(t, at, "the retry beside a flood")
	if s.delivered() {
		t.Error("the flood was over: nothing is shown")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("the retry took %v beside a flood", took)
	}
}

// clusterOfOne is a site on one node in cluster mode that has all slots; its plain client knows nothing of the cluster.
func clusterOfOne(t *testing.T) *site {
	t.Helper()
	s := siteOn(t, redistest.Start(t, "--cluster-enabled", "yes"))
	if err := s.rdb.Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	s.eventually(func() bool { return s.rdb.Set(t.Context(), "k", "v", 0).Err() == nil }, "the cluster is up")
	s.url = "redis+cluster://" + s.url[len("redis://"):]
	return s
}

// One node with cluster mode on refuses scripts whose declared keys lie in different slots: every operation of a worker and
// a publisher stays within one.
func TestClusterOfOne(t *testing.T) {
	t.Parallel()
	s := clusterOfOne(t)
	c := s.open()
	q := s.queue(c)
	var runs calls
	sub := s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		n := runs.add(m.ID)
		switch {
		case m.Body.ID == 1 && n == 1:
			return errors.New("once")
		case m.Body.ID == 2:
			return errors.New("never")
		case m.Body.ID == 3 && n == 1:
			return xstreamq.Snooze(time.Millisecond)
		}
		return nil
	}, xstreamq.MaxRetries(1), xstreamq.DedupeTTL(time.Minute), xstreamq.OnDeadLetter(func(context.Context, xstreamq.DeadLetter) {}))
	s.start(c)
	for i := 1; i <= 3; i++ {
		if _, err := q.Publish(t.Context(), order{i}, xstreamq.DedupeID("d")); err != nil {
			t.Fatal(err)
		}
		if _, err := q.PublishBatch(t.Context(), []order{{i}, {i}}); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Publish(t.Context(), order{i}, xstreamq.Delay(10*time.Millisecond)); err != nil {
			t.Fatal(err)
		}
	}
	s.dead(3)
	s.eventually(func() bool { return runs.distinct() == 10 }, "ten messages, %v", &runs)
	s.settled()
	start := time.Now()
	if err := sub.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("Stop took %v: the blocked read was not woken on its node", took)
	}
	if n := s.log.count() - strings.Count(s.log.String(), "a handler failed"); n != 0 {
		t.Errorf("logged:\n%s", s.log)
	}
}

// All kinds of trouble at once: each message is done or dead in the end, each handling that began has one end, and counters
// tell what happened.
func TestAllAtOnce(t *testing.T) {
	t.Parallel()
	s := siteOn(t, redistest.Start(t))
	const n = 600
	var began, ended, settled atomic.Int64
	var mu sync.Mutex
	done := map[int]int{} // acked, by the hook
	hooks := xstreamq.WithHooks(xstreamq.Hooks{
		HandleStart: func(ctx context.Context, _ *xstreamq.Delivery) context.Context { began.Add(1); return ctx },
		HandleEnd: func(_ context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, _ error, _ time.Duration) {
			ended.Add(1)
			if o == xstreamq.OutcomeAcked {
				settled.Add(1)
			}
		},
	})
	handler := func(ctx context.Context, m *xstreamq.Message[order]) error {
		select {
		case <-time.After(rand.N(10 * time.Millisecond)):
		case <-ctx.Done():
			return ctx.Err()
		}
		switch r := rand.IntN(20); {
		case m.Body.ID%50 == 0:
			return xstreamq.Reject(errors.New("rejected"))
		case r == 0:
			panic("at random")
		case r < 3:
			return errors.New("at random")
		case r == 3:
			return xstreamq.Snooze(time.Millisecond)
		}
		mu.Lock()
		done[m.Body.ID]++
		mu.Unlock()
		return nil
	}
	var clients []*xstreamq.Client
	open := func() {
		c := s.open(hooks, xstreamq.DrainTimeout(time.Second))
		s.subscribe(c, handler, xstreamq.VisibilityTimeout(time.Second), xstreamq.RetryForever(), xstreamq.MaxLost(1000), xstreamq.Concurrency(8))
		s.start(c)
		clients = append(clients, c)
	}
	for range 3 {
		open()
	}
	q := s.queue(clients[0])
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var troubles sync.WaitGroup
	every := func(d time.Duration, f func()) {
		troubles.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(d/2 + rand.N(d)) {
				f()
			}
		})
	}
	bg := context.Background()
	every(100*time.Millisecond, func() { _ = s.rdb.ScriptFlush(bg).Err() })
	every(150*time.Millisecond, func() { _ = s.rdb.Do(bg, "client", "kill", "type", "normal", "skipme", "yes").Err() })
	every(300*time.Millisecond, func() {
		if names := s.rdb.HKeys(bg, s.keys.Workers).Val(); len(names) > 0 {
			_ = s.rdb.HDel(bg, s.keys.Workers, names[rand.IntN(len(names))]).Err()
		}
	})
	every(700*time.Millisecond, func() {
		_ = s.rdb.ConfigSet(bg, "maxmemory", "1").Err()
		time.Sleep(150 * time.Millisecond)
		_ = s.rdb.ConfigSet(bg, "maxmemory", "0").Err()
	})
	every(900*time.Millisecond, func() {
		_ = s.rdb.Set(bg, s.keys.Paused, "now and then", 100*time.Millisecond).Err()
	})
	for i := 1; i <= n; i++ {
		for {
			opts := []xstreamq.PublishOption{xstreamq.DedupeID("m" + string(rune(i)))}
			if i%10 == 0 {
				opts = append(opts, xstreamq.Delay(rand.N(50*time.Millisecond)+time.Millisecond))
			}
			_, err := q.Publish(ctx, order{i}, opts...)
			if err == nil {
				break
			}
			if !errors.Is(err, xstreamq.ErrUncertain) && !errors.Is(err, xstreamq.ErrUnavailable) {
				t.Fatal(err)
			}
		}
		if i == n/2 {
			if err := clients[1].Close(); err != nil && !errors.Is(err, xstreamq.ErrDrainTimeout) {
				t.Error(err)
			}
			open()
		}
		time.Sleep(2 * time.Millisecond)
	}
	stop()
	troubles.Wait()
	if err := s.rdb.ConfigSet(bg, "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	s.within(2*patience, func() bool {
		l := s.load()
		return l.pending+l.retry+l.parked == 0 && s.delivered() && s.rdb.ZCard(bg, s.keys.Stream.Due).Val() == 0
	}, "all settled")
	dead := map[int]bool{}
	for _, m := range s.entries(s.keys.DLQ) {
		if m.Reason != "rejected" {
			t.Errorf("dead letter %+v", m)
		}
		for _, id := range bodies(t, s.entries(s.keys.DLQ)) {
			dead[id] = true
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for i := 1; i <= n; i++ {
		if done[i] == 0 && !dead[i] {
			t.Errorf("message %d was lost", i)
		}
		if i%50 == 0 != dead[i] {
			t.Errorf("message %d is dead: %v", i, dead[i])
		}
	}
	s.eventually(func() bool { return began.Load() == ended.Load() }, "every handling ends once")
	t.Logf("%d handlings, %d acks of %d messages", began.Load(), settled.Load(), n)
}
