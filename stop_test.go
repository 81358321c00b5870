package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// One subscription stops alone; the same group may be subscribed again.
func TestSubscriptionStopsAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	first, second, other := make(chan int, 10), make(chan int, 10), make(chan int, 10)
	to := func(ch chan int) func(context.Context, *xstreamq.Message[order]) error {
		return func(_ context.Context, m *xstreamq.Message[order]) error { ch <- m.Body.ID; return nil }
	}
	sub := s.subscribe(c, to(first))
	if _, err := s.queue(c).Subscribe("other", to(other)); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	s.publish(1, 1)
	receiveOne(t, first, "delivery")
	receiveOne(t, other, "delivery to the other group")
	start := time.Now()
	if err := sub.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("Stop took %v", took)
	}
	if err := sub.Stop(t.Context()); err != nil || sub.Err() != nil {
		t.Errorf("a second Stop: %v, %v", err, sub.Err())
	}
	s.publish(2, 2)
	receiveOne(t, other, "the other group goes on")
	silent(t, first, 50*time.Millisecond, "a delivery after Stop")
	s.subscribe(c, to(second))
	if id := receiveOne(t, second, "the new subscription"); id != 2 {
		t.Errorf("delivered %d", id)
	}
	if n := s.rdb.HLen(t.Context(), s.keys.Workers).Val(); n != 1 {
		t.Errorf("%d lease records, want the new subscription's alone", n)
	}
}

// Stopping lets handlers finish and hands what never started to others at once, nothing counted, under its own id.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun, release := make(chan int, 50), make(chan struct{})
	c := s.worker(func(ctx context.Context, m *xstreamq.Message[order]) error {
		begun <- m.Body.ID
		if m.Body.ID > 100 {
			<-release
		}
		return ctx.Err()
	}, xstreamq.Concurrency(2), xstreamq.VisibilityTimeout(time.Minute))
	for range 20 { // handlers are fast: it reads ahead
		s.publish(1, 20)
	}
	receive(t, begun, 400, "fast handlers")
	s.settled()
	want := map[string]bool{}
	var ids []string
	for n := 101; n <= 140; n++ {
		ids = append(ids, fmt.Sprintf(`{"id":%d}`, n))
	}
	pipe := s.rdb.TxPipeline()
	for _, body := range ids {
		pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.Main, Values: []string{"body", body, "rc", "2", "lost", "1", "losses", "3"}})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	receive(t, begun, 2, "slow handlers")
	for _, m := range s.entries(s.keys.Main) {
		if m.RC == 2 {
			want[m.EntryID] = true
		}
	}
	held := s.load().pending
	if held <= 2 {
		t.Fatalf("%d messages are held, the test is about those that were read ahead", held)
	}
	got := make(chan *xstreamq.Message[order], 50)
	other := s.open()
	s.subscribe(other, func(_ context.Context, m *xstreamq.Message[order]) error { got <- m; return nil })
	s.start(other)
	start := time.Now()
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop(t.Context()) }()
	for _, m := range receive(t, got, 38, "what had not started, at another worker") {
		if !want[m.ID] || m.Attempt != 3 || m.Lost != 1 {
			t.Errorf("message %s: attempt %d, lost %d", m.ID, m.Attempt, m.Lost)
		}
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("handed over after %v", took)
	}
	silent(t, stopped, 50*time.Millisecond, "Stop returned before its handlers")
	close(release)
	if err := receiveOne(t, stopped, "Stop"); err != nil {
		t.Error(err)
	}
	s.settled()
	if n := s.rdb.HLen(t.Context(), s.keys.Workers).Val(); n != 1 {
		t.Errorf("%d lease records after the stop, want 1", n)
	}
}

// Past the drain timeout handlers are cut with a cause; one that returns then is handed back: cut counted, no attempt.
func TestDrainTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opt, ends := watching()
	c := s.open(opt, xstreamq.DrainTimeout(200*time.Millisecond))
	begun, causes := make(chan struct{}, 2), make(chan error, 2)
	s.subscribe(c, func(ctx context.Context, m *xstreamq.Message[order]) error {
		begun <- struct{}{}
		<-ctx.Done()
		causes <- context.Cause(ctx)
		if m.Body.ID == 1 {
			return xstreamq.RetryAfter(time.Hour, errors.New("interrupted"))
		}
		return ctx.Err()
	}, xstreamq.Concurrency(2))
	s.start(c)
	s.add("body", `{"id":1}`, "rc", "1", "lost", "1")
	s.add("body", `{"id":2}`, "cut", "4")
	receive(t, begun, 2, "handlers")
	start := time.Now()
	if err := c.Stop(t.Context()); !errors.Is(err, xstreamq.ErrDrainTimeout) {
		t.Errorf("Stop: %v, want ErrDrainTimeout", err)
	}
	if took := time.Since(start); took < 200*time.Millisecond || took > 1500*time.Millisecond {
		t.Errorf("Stop took %v with a drain timeout of 200ms", took)
	}
	for _, err := range receive(t, causes, 2, "causes") {
		if !errors.Is(err, xstreamq.ErrShutdown) {
			t.Errorf("cause %v", err)
		}
	}
	for _, e := range receive(t, ends, 2, "ends") {
		if e.outcome != xstreamq.OutcomeReleased {
			t.Errorf("end %+v", e)
		}
	}
	for _, m := range s.entries(s.keys.Retry) {
		switch m.Body {
		case `{"id":1}`:
			if m.RC != 1 || m.Lost != 1 || m.Cut != 1 {
				t.Errorf("handed back %+v", m)
			}
		case `{"id":2}`:
			if m.RC != 0 || m.Cut != 5 {
				t.Errorf("handed back %+v", m)
			}
		}
	}
	if l := s.load(); l != (load{retry: 2}) {
		t.Errorf("%+v, want both in the retry stream", l)
	}
	if err := c.Close(); !errors.Is(err, xstreamq.ErrDrainTimeout) {
		t.Errorf("Close: %v, want what Stop came to", err)
	}
}

// A message that shutdowns cut a hundred times is dead.
func TestCutTooOften(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open(xstreamq.DrainTimeout(0))
	begun := make(chan struct{}, 1)
	s.subscribe(c, func(ctx context.Context, _ *xstreamq.Message[order]) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	s.start(c)
	s.add("body", `{"id":1}`, "cut", "100")
	receiveOne(t, begun, "handler")
	if err := c.Close(); !errors.Is(err, xstreamq.ErrDrainTimeout) {
		t.Errorf("Close: %v", err)
	}
	if m := s.dead(1)[0]; m.Reason != "cut" || m.Cut != 101 || m.RC != 0 {
		t.Errorf("dead letter %+v", m)
	}
}

// A handler deaf to its context is left: Stop returns, and its message stays pending until the lease ends.
func TestStopLeavesDeafHandlers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open(xstreamq.DrainTimeout(100 * time.Millisecond))
	begun, release := make(chan struct{}, 1), make(chan struct{})
	s.subscribe(c, func(context.Context, *xstreamq.Message[order]) error {
		begun <- struct{}{}
		<-release
		return nil
	}, xstreamq.VisibilityTimeout(2*time.Second))
	s.start(c)
	defer close(release)
	s.publish(1, 1)
	receiveOne(t, begun, "handler")
	start := time.Now()
	if err := c.Close(); !errors.Is(err, xstreamq.ErrDrainTimeout) {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("Close took %v", took)
	}
	if l := s.load(); l != (load{pending: 1}) {
		t.Errorf("%+v, want it pending", l)
	}
	got := make(chan *xstreamq.Message[order], 1)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error { got <- m; return nil }, xstreamq.VisibilityTimeout(2*time.Second))
	if m := receiveOne(t, got, "the message after its lease"); m.Lost != 1 || m.Attempt != 1 {
		t.Errorf("delivered again with attempt %d, lost %d", m.Attempt, m.Lost)
	}
}

// A stop with a context that is over stops without draining; with nothing to cut it is a clean one.
func TestStopAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.worker(nothing)
	s.eventually(func() bool { return len(s.rdb.XInfoGroups(t.Context(), s.keys.Main).Val()) == 1 }, "the group")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	if err := c.Stop(ctx); err != nil {
		t.Errorf("Stop of an idle client: %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("Stop took %v", took)
	}
}

// A worker that stops takes nothing along: what its last blocked read may have been given is another's at once, long before any
// lease ends.
func TestStopTakesNothingAlong(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var runs calls
	h := func(_ context.Context, m *xstreamq.Message[order]) error { runs.add(m.ID); return nil }
	hour := xstreamq.VisibilityTimeout(time.Hour)
	s.worker(h, hour)
	var ids []string
	for range 20 {
		leaving := s.worker(h, hour)
		stopped := make(chan error, 1)
		go func() { stopped <- leaving.Stop(context.Background()) }()
		for n := range 20 {
			ids = append(ids, s.publish(n, n)...)
		}
		if err := receiveOne(t, stopped, "the stop"); err != nil {
			t.Error(err)
		}
	}
	s.within(5*time.Second, func() bool { return runs.distinct() == len(ids) }, "all are handled, %v", &runs)
	s.settled()
	runs.each(t, ids, 1)
}

// Stop leaves Publish to work until Close.
func TestPublishInAHandlerWhileDraining(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	q := s.queue(c)
	begun, published := make(chan struct{}, 1), make(chan error, 1)
	s.subscribe(c, func(ctx context.Context, m *xstreamq.Message[order]) error {
		begun <- struct{}{}
		<-m.Draining()
		_, err := q.Publish(ctx, order{2})
		published <- err
		return err
	})
	s.start(c)
	s.publish(1, 1)
	receiveOne(t, begun, "handler")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := receiveOne(t, published, "publish"); err != nil {
		t.Error(err)
	}
	if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

// A group that was removed ends its subscription; Run goes on for the others, and the group may be subscribed anew.
func TestGroupRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.open()
	sub := s.subscribe(c, nothing)
	got := make(chan int, 5)
	if _, err := s.queue(c).Subscribe("other", func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil }); err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ran <- c.Run(ctx) }()
	if err := sub.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.rdb.SRem(ctx, s.keys.Registry(), s.keys.Member("svc")).Err(); err != nil {
		t.Fatal(err)
	}
	pipe := s.rdb.TxPipeline()
	pipe.HSet(ctx, s.keys.Groups, "svc", "x|"+fmt.Sprint(time.Now().UnixMilli()))
	pipe.XGroupDestroy(ctx, s.keys.Main, "svc")
	pipe.Del(ctx, s.keys.Retry, s.keys.Workers)
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	receiveOne(t, endOf(sub.Stopped()), "the subscription ends")
	if err := sub.Err(); !errors.Is(err, xstreamq.ErrGroupRemoved) || !strings.Contains(err.Error(), "svc") {
		t.Errorf("its error: %v", err)
	}
	if s.rdb.SIsMember(ctx, s.keys.Registry(), s.keys.Member("svc")).Val() {
		t.Error("the removed group is listed again by the subscription that misses it")
	}
	s.publish(1, 1)
	receiveOne(t, got, "the other group goes on")
	silent(t, ran, 50*time.Millisecond, "Run returned")
	again := make(chan int, 5)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { again <- m.Body.ID; return nil })
	receiveOne(t, again, "the group made anew")
	cancel()
	if err := receiveOne(t, ran, "Run"); err != nil {
		t.Error(err)
	}
}

// No goroutine of this module outlives Close. It looks at all goroutines, so it runs alone.
func TestNoGoroutineOutlivesClose(t *testing.T) { //nolint:paralleltest // it counts the goroutines of the process
	s := newSite(t)
	before := ours()
	var failed atomic.Int32
	c, err := xstreamq.Open(s.url, xstreamq.Prefix(s.prefix))
	if err != nil {
		t.Fatal(err)
	}
	q := s.queue(c)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Attempt == 1 {
			failed.Add(1)
			return errors.New("once")
		}
		return nil
	}, xstreamq.DedupeTTL(time.Minute), xstreamq.OnDeadLetter(func(context.Context, xstreamq.DeadLetter) {}))
	s.start(c)
	for i := range 50 {
		if _, err := q.Publish(t.Context(), order{i}); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually(func() bool { return failed.Load() == 50 }, "first attempts")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.within(2*time.Second, func() bool { return ours() <= before }, "no goroutine is left:\n%v", stacks{})
}

// ours counts goroutines that run code of this module, but for the tests' own.
func ours() (n int) {
	for g := range strings.SplitSeq(string(allStacks()), "\n\n") {
		if strings.Contains(g, "xstreamq/internal/engine.") || strings.Contains(g, "xstreamq/internal/commit.") ||
			strings.Contains(g, "xstreamq/internal/conn.") || strings.Contains(g, "xstreamq.(*") {
			n++
		}
	}
	return n
}

type stacks struct{}

func (stacks) String() string { return string(allStacks()) }

func allStacks() []byte {
	for size := 1 << 20; ; size *= 2 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size {
			return buf[:n]
		}
	}
}
