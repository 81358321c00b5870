package xstreamqtest_test

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
	"github.com/xstreamq/xstreamq/xstreamqtest"
)

func (o order) Validate() error {
	if o.ID == 666 {
		return errors.New("no such order")
	}
	return nil
}

// Days of backoff, delay, snooze and lease pass in a few seconds of real time at most.
func TestDrainJumps(t *testing.T) {
	t.Parallel()
	kit, s := open(t)
	s.mustSubscribe(t, func(_ context.Context, m *xstreamq.Message[order]) error {
		switch {
		case m.Body.ID == 1 && m.Attempt < 4:
			return xstreamq.RetryAfter(48*time.Hour, errors.New("not yet"))
		case m.Body.ID == 2 && time.Until(m.PublishedAt) > -time.Hour:
			return nil
		}
		return nil
	})
	s.mustBuy(t, 1)
	if _, err := s.orders.Publish(t.Context(), order{ID: 2}, xstreamq.Delay(300*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got, want := kit.Drain(), (xstreamqtest.Tally{Acked: 2, Failed: 3}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
}

// Expiry goes by the server's clock: from the publish, over retries, from the end of a delay, from a redrive.
func TestExpiry(t *testing.T) {
	t.Parallel()
	kit, s := open(t)
	kit.Advance(1000 * time.Hour) // the worker's own clock is far behind
	s.mustSubscribe(t, func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Body.ID == 2 {
			return xstreamq.RetryAfter(40*time.Minute, errors.New("flaky"))
		}
		return nil
	}, xstreamq.ExpireAfter(time.Hour))
	s.mustBuy(t, 1) // before there is a worker
	kit.Advance(61 * time.Minute)
	if got, want := kit.Drain(), (xstreamqtest.Tally{Dead: 1}); got != want {
		t.Errorf("too old: got %+v, want %+v", got, want)
	}
	s.mustBuy(t, 2) // at 0 and 40 min, not at 80
	if got, want := kit.Drain(), (xstreamqtest.Tally{Failed: 2, Dead: 1}); got != want {
		t.Errorf("retried: got %+v, want %+v", got, want)
	}
	due := kit.Now().Add(5 * time.Hour)
	if _, err := s.orders.Publish(t.Context(), order{ID: 3}, xstreamq.DeliverAt(due)); err != nil {
		t.Fatal(err)
	}
	if got, want := kit.Drain(), (xstreamqtest.Tally{Acked: 1}); got != want || kit.Now().Before(due) {
		t.Errorf("delayed: got %+v, want %+v", got, want)
	}
	f := xstreamq.Filter{Reason: xstreamq.ReasonExpired}
	if res, err := kit.Client().Admin().Group("orders", "svc").RedriveAll(t.Context(), f, xstreamq.Bulk{}); err != nil || res.Done != 2 {
		t.Fatalf("redriven %+v, %v", res, err)
	}
	if got, want := kit.Drain(), (xstreamqtest.Tally{Acked: 1, Failed: 2, Dead: 1}); got != want {
		t.Errorf("redriven: got %+v, want %+v", got, want)
	}
}

// What a dead worker held is taken over, though its lease of ten minutes had just begun; the kit's own goes on.
func TestDrainTakesOverLostLeases(t *testing.T) {
	t.Parallel()
	kit, s := open(t)
	var lost atomic.Int32
	s.mustSubscribe(t, func(_ context.Context, m *xstreamq.Message[order]) error {
		lost.Add(int32(m.Lost))
		return nil
	}, xstreamq.VisibilityTimeout(10*time.Minute))
	s.mustBuy(t, 1)
	if _, err := kit.Client().Admin().Group("orders", "svc").Create(t.Context(), xstreamq.Head); err != nil {
		t.Fatal(err)
	}
	opt, err := redis.ParseURL(kit.URL())
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opt)
	t.Cleanup(func() { _ = rdb.Close() })
	if err := rdb.XReadGroup(t.Context(), &redis.XReadGroupArgs{
		Group: "svc", Consumer: "died", Streams: []string{"{orders}", ">"}, Count: 1,
	}).Err(); err != nil {
		t.Fatal(err)
	}
	if got, want := kit.Drain(), (xstreamqtest.Tally{Acked: 1}); got != want || lost.Load() != 1 {
		t.Errorf("got %+v, want %+v; leases lost %d, want 1", got, want, lost.Load())
	}
}

// A jump takes nobody's lease who is alive: not the kit's, and not that of another client whose handler runs.
func TestAdvanceKeepsTheLeasesOfTheLiving(t *testing.T) {
	t.Parallel()
	kit, s := open(t)
	other, err := xstreamq.Open(kit.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	entered, leave, swept := make(chan struct{}), make(chan struct{}), make(chan struct{}, 10)
	var runs atomic.Int32
	handle := func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.Add(1)
		if m.Body.ID == 1 {
			entered <- struct{}{}
			<-leave
		} else {
			swept <- struct{}{}
		}
		return nil
	}
	if _, err := xstreamq.NewQueue[order](other, "orders").Subscribe("svc", handle); err != nil {
		t.Fatal(err)
	}
	if err := other.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mustBuy(t, 1)
	<-entered
	s.mustSubscribe(t, handle)
	if err := kit.Client().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := s.orders.Publish(t.Context(), order{ID: 2}, xstreamq.Delay(time.Hour)); err != nil {
			t.Fatal(err)
		}
		kit.Advance(time.Hour)
		<-swept // a sweep made it due, after the jump
	}
	close(leave)
	kit.Drain()
	if n := runs.Load(); n != 4 {
		t.Errorf("4 messages ran %d times", n)
	}
	pending, err := kit.Client().Admin().Group("orders", "svc").Depth(t.Context())
	if err != nil || pending.Pending+pending.Dead > 0 {
		t.Errorf("left %+v, %v", pending, err)
	}
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	kit, s := open(t)
	buy := func() xstreamq.Published {
		p, err := s.orders.Publish(t.Context(), order{ID: 1}, xstreamq.DedupeID("o-1"))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := buy()
	if p := buy(); !p.Duplicate || p.ID != first.ID {
		t.Errorf("a repeated publish within the window: %+v", p)
	}
	kit.Advance(11 * time.Minute)
	if p := buy(); p.Duplicate {
		t.Errorf("the window of 10 min had passed by the server's clock: %+v", p)
	}
}

func TestBreakAndMend(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"OOM command not allowed", "READONLY You can't write against a read only replica.", "LOADING Redis is loading"} {
		t.Run(strings.Fields(text)[0], func(t *testing.T) {
			t.Parallel()
			kit, s := open(t)
			s.mustSubscribe(t, s.handle)
			if err := kit.Client().Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			kit.Break(errors.New(text))
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			err := s.buy(ctx, 1)
			if !errors.Is(err, xstreamq.ErrUnavailable) && !errors.Is(err, xstreamq.ErrUncertain) {
				t.Errorf("publish: %v", err)
			}
			kit.Mend()
			s.mustBuy(t, 1)
			if got := kit.Drain(); got.Acked < 1 || got.Failed+got.Dead > 0 {
				t.Errorf("got %+v, want no attempt spent", got)
			}
		})
	}
}

func TestHandle(t *testing.T) {
	t.Parallel()
	kit := xstreamqtest.New(t, xstreamq.SubscribeDefaults(xstreamq.WithMiddleware(func(next xstreamq.Handler) xstreamq.Handler {
		return func(ctx context.Context, d *xstreamq.Delivery) error {
			return next(context.WithValue(ctx, key{}, "middleware"), d)
		}
	})))
	cases := []struct {
		name string
		body order
		h    func(context.Context, *xstreamq.Message[order]) error
		opts []xstreamq.SubscribeOption
		want xstreamq.Outcome
		err  error // nil = none
	}{
		{name: "acked", want: xstreamq.OutcomeAcked, h: func(ctx context.Context, m *xstreamq.Message[order]) error {
			if ctx.Value(key{}) != "middleware" || m.Attempt != 1 || m.MaxAttempts != 6 {
				return fmt.Errorf("%v %+v", ctx.Value(key{}), m.Delivery)
			}
			return nil
		}},
		{name: "failed", want: xstreamq.OutcomeFailed, err: errWrong, h: func(context.Context, *xstreamq.Message[order]) error { return errWrong }},
		{name: "rejected", want: xstreamq.OutcomeRejected, err: errWrong, h: func(context.Context, *xstreamq.Message[order]) error { return xstreamq.Reject(errWrong) }},
		{name: "invalid", body: order{666}, want: xstreamq.OutcomeFailed, err: xstreamq.ErrInvalidBody, h: func(context.Context, *xstreamq.Message[order]) error { return nil }},
		{
			name: "timeout", want: xstreamq.OutcomeFailed, err: xstreamq.ErrHandlerTimeout, opts: []xstreamq.SubscribeOption{xstreamq.HandlerTimeout(10 * time.Millisecond)},
			h: func(ctx context.Context, _ *xstreamq.Message[order]) error {
				<-ctx.Done()
				return context.Cause(ctx)
			},
		},
		{name: "tail", want: xstreamq.OutcomeAcked, opts: []xstreamq.SubscribeOption{xstreamq.StartFrom(xstreamq.Tail)}, h: func(context.Context, *xstreamq.Message[order]) error { return nil }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			o, err := xstreamqtest.Handle(kit, c.h, c.body, c.opts...)
			if o != c.want || !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Errorf("%s, %v; want %s, %v", o, err, c.want, c.err)
			}
		})
	}
	o, err := xstreamqtest.Handle(kit, func(context.Context, *xstreamq.Message[order]) error { panic("boo") }, order{})
	if p, ok := errors.AsType[*xstreamq.PanicError](err); o != xstreamq.OutcomeFailed || !ok || p.Value != "boo" {
		t.Errorf("a panic: %s, %v", o, err)
	}
	if got := kit.Drain(); got != (xstreamqtest.Tally{}) {
		t.Errorf("the kit's own tally has %+v of it", got)
	}
}

type key struct{}

var errWrong = errors.New("wrong")

// failing is a test that is seen to fail.
type failing struct {
	testing.TB
	said atomic.Value
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said.Store(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

func TestDrainGivesUp(t *testing.T) {
	t.Parallel()
	f := &failing{TB: t}
	kit := xstreamqtest.New(f)
	orders := xstreamq.NewQueue[order](kit.Client(), "orders")
	if _, err := orders.Publish(t.Context(), order{}); err != nil {
		t.Fatal(err)
	}
	if _, err := kit.Client().Admin().Group("orders", "search").Create(t.Context(), xstreamq.Head); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); kit.Drain() }()
	<-done
	if said, _ := f.said.Load().(string); !strings.Contains(said, "orders/search has waiting 1") {
		t.Errorf("a group that nobody works for: it says %q", said)
	}
}

func TestEndsLeaveNothing(t *testing.T) { //nolint:paralleltest // it counts goroutines
	before := runtime.NumGoroutine()
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			kit, s := open(t)
			s.mustSubscribe(t, s.handle)
			s.mustBuy(t, 1, 13, -1)
			kit.Drain()
			s.mustBuy(t, 1)
		})
	}
	for until := time.Now().Add(10 * time.Second); ; {
		n := runtime.NumGoroutine()
		if n <= before {
			return
		}
		if time.Now().After(until) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", n, before, buf[:runtime.Stack(buf, true)])
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A batch's messages count one by one.
func TestDrainBatches(t *testing.T) {
	t.Parallel()
	kit, s := open(t)
	if _, err := s.orders.SubscribeBatch("svc", func(_ context.Context, ms []*xstreamq.Message[order]) error {
		failed := xstreamq.BatchErrors{}
		for i, m := range ms {
			if m.Body.ID == 13 && m.Attempt < 3 {
				failed[i] = errWrong
			}
		}
		return failed.Err()
	}, xstreamq.BatchSize(10), xstreamq.BatchWait(10*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	s.mustBuy(t, 1, 13, 2)
	if got, want := kit.Drain(), (xstreamqtest.Tally{Acked: 3, Failed: 2}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
