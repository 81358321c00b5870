package xstreamq_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

func TestOnDeadLetter(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told := make(chan xstreamq.DeadLetter, 10)
	hooked := make(chan xstreamq.DeadLetter, 10)
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{DeadLettered: func(_ context.Context, l xstreamq.DeadLetter) { hooked <- l }}))
	s.subscribe(c, func(context.Context, *xstreamq.Message[order]) error { return errors.New("no") }, xstreamq.MaxRetries(1),
		xstreamq.OnDeadLetter(func(_ context.Context, l xstreamq.DeadLetter) { told <- l; panic("user code") }))
	s.start(c)
	p, err := s.queue(c).Publish(t.Context(), order{3}, xstreamq.Header("h", "v"))
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range []chan xstreamq.DeadLetter{told, hooked} {
		l := receiveOne(t, ch, "a dead letter")
		if l.ID != p.ID || l.Reason != xstreamq.ReasonRetries || l.Error != "no" || l.Attempts != 2 || string(l.Body) != `{"id":3}` ||
			l.Group != "svc" || l.Headers["h"] != "v" || l.DiedAt.IsZero() {
			t.Errorf("told %+v", l)
		}
	}
	silent(t, told, 100*time.Millisecond, "told twice")
}

// A message that lost too many workers is told to the worker that buried it.
func TestOnDeadLetterOfLostMessages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told := make(chan xstreamq.DeadLetter, 5)
	var reclaimed atomic.Int32
	c := s.open(xstreamq.WithHooks(xstreamq.Hooks{Reclaimed: func(_ context.Context, g xstreamq.GroupRef, n int) {
		if g.Stream == "orders" && g.Group == "svc" {
			reclaimed.Add(int32(n))
		}
	}}))
	handled := make(chan *xstreamq.Message[order], 5)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { handled <- m; return nil },
		xstreamq.VisibilityTimeout(time.Second), xstreamq.MaxLost(1), xstreamq.OnDeadLetter(func(_ context.Context, l xstreamq.DeadLetter) { told <- l }))
	pipe := s.rdb.TxPipeline()
	pipe.XGroupCreateMkStream(t.Context(), s.keys.Main, "svc", "0")
	once := pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.Main, Values: []string{"body", `{"id":1}`, "lost", "1", "losses", "5", "rc", "2"}})
	fresh := pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.Main, Values: []string{"body", `{"id":2}`}})
	pipe.Do(t.Context(), "xreadgroup", "group", "svc", "dead~worker", "streams", s.keys.Main, ">")
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start(c)
	l := receiveOne(t, told, "the dead letter")
	if l.ID != once.Val() || l.Reason != xstreamq.ReasonLost || l.Lost != 2 || l.Attempts != 2 {
		t.Errorf("told %+v", l)
	}
	if m := receiveOne(t, handled, "the other message"); m.ID != fresh.Val() || m.Lost != 1 || m.Attempt != 1 {
		t.Errorf("handled %+v", m)
	}
	s.settled()
	s.eventually(func() bool { return reclaimed.Load() == 2 }, "the hook was told of %v messages, want 2", &reclaimed)
	silent(t, told, 100*time.Millisecond, "told twice")
}

// Who waits for a client to stop has been told of every dead letter it made.
func TestOnDeadLetterBeforeStopReturns(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var told atomic.Int32
	begun := make(chan struct{}, 20)
	release := make(chan struct{})
	c := s.worker(func(context.Context, *xstreamq.Message[order]) error {
		begun <- struct{}{}
		<-release
		return xstreamq.Reject(errors.New("no"))
	}, xstreamq.Concurrency(20), xstreamq.OnDeadLetter(func(context.Context, xstreamq.DeadLetter) {
		time.Sleep(5 * time.Millisecond)
		told.Add(1)
	}))
	s.publish(1, 20)
	receive(t, begun, 20, "handlers")
	close(release)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if told.Load() != 20 {
		t.Errorf("told of %d dead letters, want 20", told.Load())
	}
}
