package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// A new group begins at the head: what was published before the first worker is delivered.
func TestDelivery(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	before := s.serverTime()
	early := s.publish(1, 3)
	got := make(chan *xstreamq.Message[order], 10)
	c := s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { got <- m; return nil }, xstreamq.MaxRetries(4))
	p, err := s.queue(c).Publish(t.Context(), order{ID: 4}, xstreamq.Header("h", "v"))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]*xstreamq.Message[order]{}
	for _, m := range receive(t, got, 4, "four messages") {
		seen[m.ID] = m
	}
	for i, id := range append(early, p.ID) {
		m := seen[id]
		if m == nil {
			t.Fatalf("message %s was not delivered", id)
		}
		if m.Body.ID != i+1 || string(m.Raw) != fmt.Sprintf(`{"id":%d}`, i+1) || m.EntryID != id || m.Stream != "orders" || m.Group != "svc" ||
			m.Attempt != 1 || m.MaxAttempts != 5 || m.Lost != 0 {
			t.Errorf("message %s: %+v", id, m)
		}
		if m.PublishedAt.Before(before.Truncate(time.Millisecond)) || m.PublishedAt.After(s.serverTime()) {
			t.Errorf("published at %v, the test began at %v", m.PublishedAt, before)
		}
	}
	if h := seen[p.ID].Headers; len(h) != 1 || h["h"] != "v" {
		t.Errorf("headers %v", h)
	}
	s.settled()
	silent(t, got, 100*time.Millisecond, "a fifth delivery")
}

func TestStartFrom(t *testing.T) {
	t.Parallel()
	for name, position := range map[string]func(ids []string) (xstreamq.Position, int){
		"head":  func([]string) (xstreamq.Position, int) { return xstreamq.Head, 1 },
		"after": func(ids []string) (xstreamq.Position, int) { return xstreamq.AfterID(ids[1]), 3 },
		"tail":  func([]string) (xstreamq.Position, int) { return xstreamq.Tail, 4 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			from, first := position(s.publish(1, 3))
			got := make(chan int, 10)
			s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil }, xstreamq.StartFrom(from))
			s.publish(4, 4)
			list := receive(t, got, 5-first, "deliveries")
			slices.Sort(list)
			if list[0] != first || list[len(list)-1] != 4 {
				t.Errorf("delivered %v, want %d to 4", list, first)
			}
			silent(t, got, 50*time.Millisecond, "one more")
		})
	}
}

// Groups each get every message; workers of one group share them.
func TestGroupsAndSharing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	const n = 300
	var a, b calls
	group := func(name string, c *calls) {
		client := s.open()
		if _, err := s.queue(client).Subscribe(name, func(_ context.Context, m *xstreamq.Message[order]) error {
			if c.add(m.ID) == 1 && name == "b" && m.Body.ID == 7 {
				return errors.New("once") // group b's own business
			}
			return nil
		}, fast); err != nil {
			t.Fatal(err)
		}
		s.start(client)
	}
	group("a", &a)
	group("a", &a)
	group("b", &b)
	ids := s.publish(1, n)
	s.eventually(func() bool { return a.total() == n && b.total() == n+1 }, "a handled %d, b %d of %d", &a, &b, n)
	a.each(t, ids, 1)
	if b.distinct() != n || b.total() != n+1 {
		t.Errorf("group b: %d messages, %d runs", b.distinct(), b.total())
	}
}

// Concurrency bounds the handlers that run at once, and all of it is used.
func TestConcurrency(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.publish(1, 60)
	var now, most atomic.Int32
	full := make(chan struct{})
	var done atomic.Int32
	s.worker(func(ctx context.Context, _ *xstreamq.Message[order]) error {
		n := now.Add(1)
		defer now.Add(-1)
		for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
		}
		if n == 5 {
			close(full)
		}
		if done.Load() < 5 {
			<-full // until five run together
		}
		done.Add(1)
		return ctx.Err()
	}, xstreamq.Concurrency(5))
	s.eventually(func() bool { return done.Load() >= 60 }, "all handled, are %v", &done)
	if most.Load() != 5 {
		t.Errorf("%d handlers ran at once, want 5", most.Load())
	}
}

// A worker whose handlers are slow takes no more than it can run: the rest goes to an idle one.
func TestABusyWorkerHoardsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	release := make(chan struct{})
	slow := make(chan int, 100)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		slow <- m.Body.ID
		<-release
		return nil
	}, xstreamq.Concurrency(2))
	s.publish(1, 2)
	receive(t, slow, 2, "the slow worker is busy")
	s.publish(3, 30)
	quick := make(chan int, 100)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { quick <- m.Body.ID; return nil }, xstreamq.Concurrency(1))
	receive(t, quick, 28, "the idle worker gets the others")
	close(release)
	s.settled()
}

func TestSubscribeRefuses(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	h := func(context.Context, *xstreamq.Message[order]) error { return nil }
	s.subscribe(c, h)
	if _, err := s.queue(c).Subscribe("svc", h); !errors.Is(err, xstreamq.ErrAlreadySubscribed) || !strings.Contains(err.Error(), "group svc") {
		t.Errorf("a second subscription: %v", err)
	}
	if _, err := s.queue(c).Subscribe("other", nil); !errors.Is(err, xstreamq.ErrInvalidOption) {
		t.Errorf("no handler: %v", err)
	}
	if _, err := s.queue(c).Subscribe("other", h); err != nil {
		t.Errorf("another group: %v", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.queue(c).Subscribe("third", h); !errors.Is(err, xstreamq.ErrClosed) {
		t.Errorf("on a closed client: %v", err)
	}
}

// A subscription that is added to a running client begins by itself.
func TestSubscribeWhileRunning(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	s.start(c)
	got := make(chan string, 1)
	sub := s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.ID; return nil })
	id := s.publish(1, 1)[0]
	if m := receiveOne(t, got, "delivery"); m != id {
		t.Errorf("delivered %s, want %s", m, id)
	}
	if err := sub.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// A flag in the server stops reading and hands back what waits; without it all goes on.
func TestPauseFlag(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told := make(chan string, 10)
	got := make(chan int, 100)
	hold := make(chan struct{})
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{Paused: func(_ context.Context, g xstreamq.GroupRef, paused bool, reason string) {
		told <- fmt.Sprintf("%s/%s %v %s", g.Stream, g.Group, paused, reason)
	}}))
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		got <- m.Body.ID
		if m.Body.ID == 1 {
			<-hold
		}
		return nil
	}, xstreamq.Concurrency(1))
	s.start(c)
	s.publish(1, 1)
	receiveOne(t, got, "the first message")
	s.addTo(s.keys.Retry, "body", `{"id":2}`)
	if err := s.rdb.Set(t.Context(), s.keys.Paused, `{"reason":"a migration"}`, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if line := receiveOne(t, told, "the pause hook"); line != "orders/svc true a migration" {
		t.Errorf("told %s", line)
	}
	s.within(2*time.Second, func() bool { return s.load().pending == 1 }, "only the running handler holds something")
	s.publish(3, 5)
	close(hold) // running handlers go on and are settled
	s.within(2*time.Second, func() bool { return s.load().pending == 0 }, "the running handler's message is acked")
	silent(t, got, 500*time.Millisecond, "a delivery while paused")
	if err := s.rdb.Del(t.Context(), s.keys.Paused).Err(); err != nil {
		t.Fatal(err)
	}
	list := receive(t, got, 4, "all after the pause")
	slices.Sort(list)
	if fmt.Sprint(list) != "[2 3 4 5]" {
		t.Errorf("delivered %v", list)
	}
	if line := receiveOne(t, told, "the pause hook"); line != "orders/svc false " {
		t.Errorf("told %s", line)
	}
	s.settled()
}

// A message that lost its worker twice runs alone; what else the worker does waits for it, and goes on.
func TestSuspectRunsAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var running atomic.Int32
	got := make(chan string, 200)
	long := make(chan struct{})
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		n := running.Add(1)
		defer running.Add(-1)
		switch {
		case m.Body.ID == 1:
			got <- "long"
			<-long
		case m.Lost == 2:
			if n != 1 {
				t.Errorf("%d handlers beside the suspect", n-1)
			}
			time.Sleep(50 * time.Millisecond) // what would start beside it has the time to
			if n := running.Load(); n != 1 {
				t.Errorf("%d handlers started beside the suspect", n-1)
			}
			got <- "suspect"
		default:
			got <- "other"
		}
		return nil
	}, xstreamq.Concurrency(4), xstreamq.VisibilityTimeout(2*time.Second), xstreamq.HandlerTimeout(time.Minute))
	s.publish(1, 1)
	receiveOne(t, got, "the long handler")
	s.addTo(s.keys.Retry, "body", `{"id":2}`, "lost", "2", "oid", "1-1")
	// The suspect is first handed on, in case another worker is idle; what comes meanwhile is not held up for ever.
	s.publish(3, 20)
	silent(t, (<-chan string)(nil), 2500*time.Millisecond, "")
	close(long)
	seen := map[string]int{}
	for _, kind := range receive(t, got, 19, "all others, and the suspect") {
		seen[kind]++
	}
	if seen["suspect"] != 1 || seen["other"] != 18 {
		t.Errorf("ran %v", seen)
	}
	s.settled()
}

// A suspect that came to a busy worker and was handed on leaves no trace there: it goes on reading.
func TestHandedOnSuspectHoldsNobody(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	got := make(chan int, 200)
	long := make(chan struct{})
	defer close(long)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		got <- m.Body.ID
		if m.Body.ID == 1 {
			<-long
		}
		return nil
	}, xstreamq.Concurrency(4), xstreamq.VisibilityTimeout(2*time.Second), xstreamq.HandlerTimeout(time.Minute))
	s.publish(1, 1)
	receiveOne(t, got, "the long handler")
	s.addTo(s.keys.Retry, "body", `{"id":2}`, "lost", "2", "oid", "1-1")
	s.eventually(func() bool { return s.load().pending == 2 }, "the suspect is read")
	// An idle worker comes, gets the suspect, and the busy one is free again.
	idle := make(chan int, 200)
	other := s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { idle <- m.Body.ID; return nil }, xstreamq.VisibilityTimeout(2*time.Second))
	if id := receiveOne(t, idle, "the idle worker"); id != 2 {
		t.Errorf("it got %d", id)
	}
	if err := other.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.publish(3, 10)
	receive(t, got, 8, "the busy worker goes on")
}

// Two subscriptions of one client, on a server that is slow to answer nothing: each has a connection of its own for reading.
func TestReadsDoNotUseThePool(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	small := s.borrowed(func(o *redis.UniversalOptions) { o.PoolSize = 1 })
	c, err := xstreamq.New(small, xstreamq.Prefix(s.prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	for _, group := range []string{"a", "b", "c"} {
		if _, err := s.queue(c).Subscribe(group, func(context.Context, *xstreamq.Message[order]) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	s.start(c)
	time.Sleep(100 * time.Millisecond) // the reads are blocked now, for up to two seconds
	start := time.Now()
	if err := small.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("a ping through a pool of one took %v beside three blocked reads", took)
	}
}

// An id from the far future moves the stream's clock, not ours: what is due stays due by the server's time.
func TestIDFromTheFuture(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	got := make(chan *xstreamq.Message[order], 10)
	c := s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		got <- m
		if m.Attempt == 1 {
			return errors.New("once")
		}
		return nil
	})
	if err := s.rdb.Do(t.Context(), "xadd", s.keys.Main, "9999999999999-18446744073709551614", "body", `{"id":1}`).Err(); err != nil {
		t.Fatal(err)
	}
	start := s.serverTime()
	p, err := s.queue(c).Publish(t.Context(), order{2}, xstreamq.Delay(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range receive(t, got, 4, "both, twice") {
		if m.ID == p.ID && (s.serverTime().Sub(start) < 200*time.Millisecond || m.PublishedAt.Sub(start).Abs() > time.Minute) {
			t.Errorf("the delayed message came after %v, published at %v", s.serverTime().Sub(start), m.PublishedAt)
		}
	}
	s.settled()
}
