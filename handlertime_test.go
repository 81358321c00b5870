package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// The handler's time ends with a cause, and the run is a failed attempt, even when it returns nil after it.
func TestHandlerTimeout(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(ctx context.Context) error{
		"the cause": context.Cause, "an error of its own": func(context.Context) error { return errors.New("interrupted") },
		"nil": func(context.Context) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			type end struct {
				took  time.Duration
				cause error
			}
			ended := make(chan end, 5)
			s.worker(func(ctx context.Context, m *xstreamq.Message[order]) error {
				start := m.Until().Add(-200 * time.Millisecond) // a busy machine may have let some of it pass
				if until := time.Until(m.Until()); until > 200*time.Millisecond || until < 0 {
					t.Errorf("until %v from now", until)
				}
				if _, ok := ctx.Deadline(); ok {
					t.Error("the context has a deadline, which Extend could not move")
				}
				<-ctx.Done()
				ended <- end{time.Since(start), context.Cause(ctx)}
				if err := m.Extend(ctx, time.Hour); !errors.Is(err, xstreamq.ErrHandlerTimeout) {
					t.Errorf("Extend when it is over: %v", err)
				}
				return answer(ctx)
			}, xstreamq.HandlerTimeout(200*time.Millisecond), xstreamq.MaxRetries(1))
			s.publish(1, 1)
			for _, e := range receive(t, ended, 2, "runs") {
				if !errors.Is(e.cause, xstreamq.ErrHandlerTimeout) || e.took < 199*time.Millisecond {
					t.Errorf("ended after %v by %v", e.took, e.cause)
				}
			}
			m := s.dead(1)[0]
			if m.RC != 2 || !strings.HasPrefix(m.Err, "handler timeout") {
				t.Errorf("dead letter %+v", m)
			}
			if name == "an error of its own" && m.Err != "handler timeout: interrupted" {
				t.Errorf("error %q", m.Err)
			}
		})
	}
}

// Without HandlerTimeout the visibility timeout bounds a handler; without either nothing does.
func TestDefaultHandlerTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	until := make(chan time.Duration, 2)
	handler := func(_ context.Context, m *xstreamq.Message[order]) error {
		if m.Until().IsZero() {
			until <- 0
		} else {
			until <- time.Until(m.Until())
		}
		if err := m.Extend(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		return nil
	}
	c := s.worker(handler, xstreamq.VisibilityTimeout(5*time.Second))
	s.publish(1, 1)
	if d := receiveOne(t, until, "handler"); d <= 0 || d > 5*time.Second {
		t.Errorf("until %v from now, want 5s", d)
	}
	s.settled()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	s.worker(handler, xstreamq.NoVisibilityTimeout())
	s.publish(2, 2)
	if d := receiveOne(t, until, "handler"); d != 0 {
		t.Errorf("until %v from now, want no end", d)
	}
}

func TestExtend(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	ended := make(chan error, 5)
	s.worker(func(ctx context.Context, m *xstreamq.Message[order]) error {
		start := time.Now()
		if err := m.Extend(ctx, 0); !errors.Is(err, xstreamq.ErrInvalidOption) || !strings.Contains(err.Error(), "Extend(0s)") {
			t.Errorf("Extend(0): %v", err)
		}
		end := m.Until()
		if err := m.Extend(ctx, time.Millisecond); err != nil || !m.Until().Equal(end) {
			t.Errorf("a shorter one: %v, moved from %v to %v", err, end, m.Until())
		}
		for range 4 { // 500 ms are not enough for this, extended they are
			if err := m.Extend(ctx, 10*time.Second); err != nil {
				t.Error(err)
			}
			select {
			case <-time.After(150 * time.Millisecond):
			case <-ctx.Done():
				t.Errorf("ended after %v: %v", time.Since(start), context.Cause(ctx))
			}
		}
		if err := m.Extend(ctx, 1<<63-1); err != nil || time.Until(m.Until()) < 365*24*time.Hour {
			t.Errorf("the longest one: %v, until %v", err, m.Until())
		}
		ended <- ctx.Err()
		return nil
	}, xstreamq.HandlerTimeout(500*time.Millisecond), xstreamq.MaxRetries(0))
	s.publish(1, 1)
	if err := receiveOne(t, ended, "handler"); err != nil {
		t.Error(err)
	}
	s.settled()
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
	if err := (&xstreamq.Message[order]{}).Extend(t.Context(), time.Second); err != nil {
		t.Errorf("a message made by hand: %v", err)
	}
}

// A handler deaf to its context keeps its slot; its message is failed half a visibility later, and what it says then is dropped.
func TestDeafHandler(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opt, ends := watching()
	c := s.open(opt)
	release := make(chan struct{})
	late := make(chan error, 1)
	runs := make(chan int, 10)
	s.subscribe(c, func(ctx context.Context, m *xstreamq.Message[order]) error {
		runs <- m.Attempt
		if m.Body.ID == 1 && m.Attempt == 1 {
			<-release
			late <- m.Extend(ctx, time.Minute)
			return xstreamq.Reject(errors.New("too late to matter"))
		}
		return nil
	}, xstreamq.HandlerTimeout(200*time.Millisecond), xstreamq.VisibilityTimeout(time.Second), xstreamq.Concurrency(2))
	s.start(c)
	start := time.Now()
	s.publish(1, 1)
	if list := receive(t, runs, 2, "a second attempt beside the deaf one"); fmt.Sprint(list) != "[1 2]" {
		t.Errorf("attempts %v", list)
	}
	if took := time.Since(start); took < 700*time.Millisecond {
		t.Errorf("failed after %v, its time was 200ms and half a visibility", took)
	}
	for i, e := range receive(t, ends, 2, "ends") {
		if want := []xstreamq.Outcome{"failed", "acked"}[i]; e.outcome != want {
			t.Errorf("end %d: %+v", i, e)
		}
	}
	close(release)
	if err := receiveOne(t, late, "the deaf handler"); !errors.Is(err, xstreamq.ErrLeaseExpired) {
		t.Errorf("its Extend: %v", err)
	}
	silent(t, ends, 100*time.Millisecond, "an end of the late result")
	s.settled()
	if l := s.load(); l.dead != 0 {
		t.Errorf("%+v", l)
	}
	s.publish(2, 3) // the slot is free again
	receive(t, runs, 2, "runs after it")
}

func TestDraining(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	begun, drained := make(chan struct{}, 1), make(chan error, 1)
	c := s.worker(func(ctx context.Context, m *xstreamq.Message[order]) error {
		select {
		case <-m.Draining():
			t.Error("draining before the stop")
		default:
		}
		begun <- struct{}{}
		<-m.Draining()
		drained <- ctx.Err() // the context goes on
		return nil
	})
	s.publish(1, 1)
	receiveOne(t, begun, "handler")
	if err := c.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := receiveOne(t, drained, "the drain"); err != nil {
		t.Errorf("the context ended: %v", err)
	}
	s.settled()
}
