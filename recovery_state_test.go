package xstreamq_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// What vanished under an idle worker is made again where it was: what comes next is handled soon, what was done stays done,
// and nothing spins.
func TestVanished(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(s *site) error{
		"group":    func(s *site) error { return s.rdb.XGroupDestroy(s.t.Context(), s.keys.Main, "svc").Err() },
		"stream":   func(s *site) error { return s.rdb.Del(s.t.Context(), s.keys.Main).Err() },
		"retry":    func(s *site) error { return s.rdb.Del(s.t.Context(), s.keys.Retry).Err() },
		"all":      func(s *site) error { return s.rdb.FlushAll(s.t.Context()).Err() },
		"workers":  func(s *site) error { return s.rdb.Del(s.t.Context(), s.keys.Workers).Err() },
		"renamed":  func(s *site) error { return s.rdb.Rename(s.t.Context(), s.keys.Main, s.prefix+"elsewhere").Err() },
		"recorded": func(s *site) error { return s.rdb.Del(s.t.Context(), s.keys.Main, s.keys.Groups).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := siteOn(t, redistest.Start(t))
			remade := make(chan xstreamq.Position, 10)
			c := s.open(xstreamq.SweepInterval(time.Second), xstreamq.WithHooks(xstreamq.Hooks{
				GroupRemade: func(_ context.Context, _ xstreamq.GroupRef, from xstreamq.Position) { remade <- from },
			}))
			var runs calls
			s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { runs.add(m.ID); return nil })
			s.start(c)
			s.publish(1, 30)
			s.settled()
			s.eventually(func() bool { // the position is recorded by a sweep
				last := s.rdb.XRevRangeN(t.Context(), s.keys.Main, "+", "-", 1).Val()
				return strings.HasPrefix(s.rdb.HGet(t.Context(), s.keys.Groups, "svc").Val(), last[0].ID+"|")
			}, "the position is recorded")
			if err := do(s); err != nil {
				t.Fatal(err)
			}
			s.publish(31, 33)
			s.within(2*time.Second, func() bool { return runs.total() == 33 }, "three more handled, %v", &runs)
			before := s.commands("evalsha", "eval", "xreadgroup", "xpending")
			if name != "workers" && name != "retry" {
				receiveOne(t, remade, "the hook")
			}
			time.Sleep(2 * time.Second)
			if n := s.commands("evalsha", "eval", "xreadgroup") - before; n > 12 {
				t.Errorf("%d commands in the two seconds after, is it spinning?", n)
			}
			if runs.total() != 33 || runs.distinct() != 33 {
				t.Errorf("%d runs of %d messages, want 33", runs.total(), runs.distinct())
			}
			if n := s.log.count(); n > 9 {
				t.Errorf("%d lines were logged:\n%s", n, s.log)
			}
			if l := s.load(); l != (load{}) {
				t.Errorf("%+v", l)
			}
		})
	}
}

// A consumer whose record is gone is void: its handlers are told, and it goes on under another name.
func TestRecordLost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opt, ends := watching()
	lost := make(chan string, 5)
	c := s.open(opt, xstreamq.WithHooks(xstreamq.Hooks{LeaseLost: func(_ context.Context, d *xstreamq.Delivery) { lost <- d.ID }}))
	begun := make(chan *xstreamq.Message[order], 10)
	causes := make(chan error, 1)
	var first atomic.Bool
	s.subscribe(c, func(ctx context.Context, m *xstreamq.Message[order]) error {
		begun <- m
		if first.CompareAndSwap(false, true) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			if err := m.Extend(context.Background(), time.Minute); !errors.Is(err, xstreamq.ErrLeaseExpired) {
				t.Errorf("Extend: %v", err)
			}
			return errors.New("a stale failure")
		}
		return nil
	})
	s.start(c)
	id := s.publish(1, 1)[0]
	receiveOne(t, begun, "handler")
	name := s.rdb.HKeys(t.Context(), s.keys.Workers).Val()[0]
	if err := s.rdb.HDel(t.Context(), s.keys.Workers, name).Err(); err != nil {
		t.Fatal(err)
	}
	if err := receiveOne(t, causes, "the handler is told"); !errors.Is(err, xstreamq.ErrLeaseExpired) {
		t.Errorf("cause %v", err)
	}
	if got := receiveOne(t, lost, "the hook"); got != id {
		t.Errorf("the hook was told of %s", got)
	}
	if m := receiveOne(t, begun, "the message again"); m.ID != id || m.Attempt != 1 || m.Lost != 0 {
		t.Errorf("again as %+v", m)
	}
	s.publish(2, 2)
	receiveOne(t, begun, "a new message")
	s.settled()
	for i, e := range receive(t, ends, 3, "ends") {
		if want := []xstreamq.Outcome{"lost", "acked", "acked"}[i]; e.outcome != want {
			t.Errorf("end %d: %+v", i, e)
		}
	}
	for _, n := range s.rdb.HKeys(t.Context(), s.keys.Workers).Val() {
		if n == name {
			t.Errorf("it goes on as %s", n)
		}
	}
}

// A message that others deleted while it ran is not lost when it fails: it is parked from memory.
func TestDeletedWhileItRan(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun, release := make(chan *xstreamq.Message[order], 10), make(chan struct{})
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		begun <- m
		<-release
		if m.Attempt == 1 {
			return errors.New("no")
		}
		return nil
	})
	id := s.add("body", `{"id":1}`, "tenant", "x")
	receiveOne(t, begun, "handler")
	if err := s.rdb.XDel(t.Context(), s.keys.Main, id).Err(); err != nil {
		t.Fatal(err)
	}
	close(release)
	if m := receiveOne(t, begun, "its second attempt"); m.ID != id || m.Attempt != 2 || m.Body.ID != 1 {
		t.Errorf("%+v", m)
	}
	s.settled()
}

// What a consumer of nobody's holds is taken over; what a live one holds is not, however idle it looks.
func TestForeignConsumersAndIdleTimes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun, release := make(chan *xstreamq.Message[order], 20), make(chan struct{})
	var runs calls
	handler := func(_ context.Context, m *xstreamq.Message[order]) error {
		runs.add(m.ID)
		begun <- m
		<-release
		return nil
	}
	opts := []xstreamq.SubscribeOption{xstreamq.VisibilityTimeout(time.Second), xstreamq.HandlerTimeout(time.Minute)}
	s.worker(handler, opts...)
	s.worker(handler, opts...)
	ids := s.publish(1, 4)
	receive(t, begun, 4, "handlers")
	for _, p := range s.rdb.XPendingExt(t.Context(), &redis.XPendingExtArgs{Stream: s.keys.Main, Group: "svc", Start: "-", End: "+", Count: 10}).Val() {
		if err := s.rdb.Do(t.Context(), "xclaim", s.keys.Main, "svc", p.Consumer, 0, p.ID, "idle", 3600000, "retrycount", "9223372036854775807", "justid").Err(); err != nil {
			t.Fatal(err)
		}
	}
	pipe := s.rdb.TxPipeline() // read by a ghost before any worker can
	ghost := pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.Main, Values: []string{"body", `{"id":5}`}})
	pipe.Do(t.Context(), "xreadgroup", "group", "svc", "ghost", "streams", s.keys.Main, ">")
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m := receiveOne(t, begun, "the ghost's message"); m.ID != ghost.Val() || m.Lost != 1 || m.Attempt != 1 {
		t.Errorf("%+v", m)
	}
	silent(t, begun, 500*time.Millisecond, "live work was taken")
	close(release)
	s.settled()
	runs.each(t, append(ids, ghost.Val()), 1)
}

// A parked failure whose due time was lost is found again.
func TestLostDueTime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	again := make(chan int, 1)
	s.worker(func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Attempt == 1 {
			return xstreamq.RetryAfter(time.Hour, errors.New("later"))
		}
		again <- m.Attempt
		return nil
	})
	s.publish(1, 1)
	s.parkedOnly()
	if err := s.rdb.Del(t.Context(), s.keys.Due).Err(); err != nil {
		t.Fatal(err)
	}
	receiveOne(t, again, "the failure is due")
	s.settled()
}
