package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// losing is a hook of the client library that lets chosen commands run and loses their answers.
type losing struct {
	lose func(cmd redis.Cmder) bool
	lost atomic.Int32
}

func (l *losing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *losing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil && l.lose(cmd) {
			l.lost.Add(1)
			cmd.SetErr(io.ErrUnexpectedEOF)
			return io.ErrUnexpectedEOF
		}
		return err
	}
}

func (l *losing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if err == nil && l.lose(cmd) {
				l.lost.Add(1)
				cmd.SetErr(io.ErrUnexpectedEOF)
				err = io.ErrUnexpectedEOF
			}
		}
		return err
	}
}

// lossy is a client that borrows one whose answers to some commands get lost.
func (s *site) lossy(lose func(cmd redis.Cmder) bool, opts ...xstreamq.ClientOption) (*xstreamq.Client, *losing) {
	s.t.Helper()
	l := &losing{lose: lose}
	rdb := s.borrowed()
	rdb.AddHook(l)
	c, err := xstreamq.New(rdb, append([]xstreamq.ClientOption{
		xstreamq.Prefix(s.prefix), xstreamq.SweepInterval(100 * time.Millisecond), xstreamq.WithLogger(slog.New(s.log)),
	}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil {
			s.t.Errorf("close: %v", err)
		}
	})
	return c, l
}

// first picks the first command that f accepts.
func first(f func(words string) bool) func(redis.Cmder) bool {
	var done atomic.Bool
	return func(cmd redis.Cmder) bool {
		words := strings.TrimSpace(fmt.Sprintln(cmd.Args()...))
		return f(words) && done.CompareAndSwap(false, true)
	}
}

// A publish whose answer is lost is sent once and says that it does not know; with a dedupe id it finds out.
func TestLostPublishAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c, l := s.lossy(first(func(words string) bool { return strings.HasPrefix(words, "xadd ") }))
	if _, err := s.queue(c).Publish(t.Context(), order{1}); !errors.Is(err, xstreamq.ErrUncertain) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("publish: %v, want ErrUncertain", err)
	}
	if n := s.rdb.XLen(t.Context(), s.keys.Main).Val(); n != 1 || l.lost.Load() != 1 {
		t.Errorf("%d entries, %d answers lost; want 1 of each", n, l.lost.Load())
	}
	c, l = s.lossy(first(func(words string) bool { return strings.Contains(words, ".sent:") }))
	p, err := s.queue(c).Publish(t.Context(), order{2}, xstreamq.DedupeID("k"))
	list := s.entries(s.keys.Main)
	if err != nil || l.lost.Load() != 1 || len(list) != 2 || list[1].ID != p.ID {
		t.Errorf("publish with a dedupe id: %+v, %v; %d answers lost, %d entries", p, err, l.lost.Load(), len(list))
	}
	c, l = s.lossy(first(func(words string) bool {
		return strings.Contains(words, s.keys.Stream.Parked) && strings.Contains(words, `{"id":3}`)
	}))
	if _, err := s.queue(c).Publish(t.Context(), order{3}, xstreamq.Delay(time.Hour)); !errors.Is(err, xstreamq.ErrUncertain) {
		t.Errorf("delayed publish: %v, want ErrUncertain", err)
	}
	if n := s.rdb.ZCard(t.Context(), s.keys.Stream.Due).Val(); n != 1 || l.lost.Load() != 1 {
		t.Errorf("%d delayed, %d answers lost; want 1 of each", n, l.lost.Load())
	}
}

// A settlement whose answer is lost is repeated; it changes nothing more, and ends as what the handler said.
func TestLostSettlementAnswers(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		words   string
		answer  error
		outcome xstreamq.Outcome
		want    load
	}{
		"ack":    {"xack ", nil, xstreamq.OutcomeAcked, load{}},
		"fail":   {" fail m ", xstreamq.RetryAfter(time.Hour, errors.New("no")), xstreamq.OutcomeFailed, load{parked: 1}},
		"snooze": {" snooze m ", xstreamq.Snooze(time.Hour), xstreamq.OutcomeSnoozed, load{parked: 1}},
		"reject": {" bury m ", xstreamq.Reject(errors.New("no")), xstreamq.OutcomeRejected, load{dead: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			opt, ends := watching()
			var runs atomic.Int32
			c, l := s.lossy(first(func(words string) bool { return strings.Contains(words, x.words) }), opt)
			s.subscribe(c, func(context.Context, *xstreamq.Message[order]) error { runs.Add(1); return x.answer })
			s.start(c)
			s.publish(1, 1)
			if e := receiveOne(t, ends, "the end"); e.outcome != x.outcome {
				t.Errorf("end %+v, want %s", e, x.outcome)
			}
			if l.lost.Load() != 1 || runs.Load() != 1 || s.load() != x.want {
				t.Errorf("%d answers lost, %d runs, %+v; want 1, 1, %+v", l.lost.Load(), runs.Load(), s.load(), x.want)
			}
			silent(t, ends, 200*time.Millisecond, "another end")
		})
	}
}

// A registration whose answer is lost is not repeated under its name: the next try takes another.
func TestLostRegistration(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var name string
	c, l := s.lossy(func(cmd redis.Cmder) bool {
		args := cmd.Args() // evalsha <sha> 2 <workers> <meta> <consumer> <visibility> <version>
		if name != "" || len(args) != 8 || args[2] != 2 || args[3] != s.keys.Workers {
			return false
		}
		name = fmt.Sprint(args[5])
		return true
	})
	got := make(chan int, 1)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil }, xstreamq.VisibilityTimeout(time.Second))
	s.start(c)
	s.publish(1, 1)
	receiveOne(t, got, "delivery")
	if l.lost.Load() != 1 {
		t.Fatalf("%d registrations lost their answer", l.lost.Load())
	}
	for _, stream := range []string{s.keys.Main, s.keys.Retry} {
		for _, consumer := range s.rdb.XInfoConsumers(t.Context(), stream, "svc").Val() {
			if consumer.Name == name {
				t.Errorf("%s reads under the name whose registration is unknown", stream)
			}
		}
	}
	s.eventually(func() bool { return s.rdb.HLen(t.Context(), s.keys.Workers).Val() == 1 }, "the unknown record dies of age")
}

// Heartbeats whose answers are lost do not keep a lease here, and a single one does not end it.
func TestLostHeartbeats(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var deaf atomic.Bool
	c, _ := s.lossy(func(cmd redis.Cmder) bool { return deaf.Load() && strings.HasPrefix(cmd.Name(), "eval") })
	got := make(chan int, 10)
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error { got <- m.Body.ID; return nil }, xstreamq.VisibilityTimeout(time.Second))
	s.start(c)
	s.publish(1, 1)
	receiveOne(t, got, "delivery")
	deaf.Store(true)
	time.Sleep(700 * time.Millisecond) // over half the lease
	s.publish(2, 2)
	silent(t, got, 300*time.Millisecond, "a handler started without half a lease")
	deaf.Store(false)
	receiveOne(t, got, "delivery when heartbeats are answered again")
	s.settled()
}
