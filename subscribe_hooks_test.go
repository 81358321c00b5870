package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// Middleware that makes no handler is passed by nobody: each attempt fails.
func TestMiddlewareThatMakesNoHandler(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.worker(func(context.Context, *xstreamq.Message[order]) error {
		t.Error("the handler ran")
		return nil
	}, xstreamq.WithMiddleware(func(xstreamq.Handler) xstreamq.Handler { return nil }), xstreamq.MaxRetries(0))
	s.publish(1, 1)
	s.dead(1)
}

// The wrapped handlers see each other in order, and may replace what is decoded.
func TestMiddleware(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var mu sync.Mutex
	var steps []string
	step := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, text)
	}
	layer := func(name string) xstreamq.Middleware {
		return func(next xstreamq.Handler) xstreamq.Handler {
			return func(ctx context.Context, d *xstreamq.Delivery) error {
				step(name + " in")
				err := next(ctx, d)
				step(fmt.Sprintf("%s out %v", name, err))
				return err
			}
		}
	}
	decrypt := func(next xstreamq.Handler) xstreamq.Handler {
		return func(ctx context.Context, d *xstreamq.Delivery) error {
			d.Raw = []byte(strings.TrimPrefix(string(d.Raw), "secret:"))
			return next(ctx, d)
		}
	}
	done := make(chan *xstreamq.Message[order], 1)
	c := s.open(xstreamq.SubscribeDefaults(xstreamq.WithMiddleware(layer("outer"))))
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		step("handler")
		done <- m
		return nil
	}, xstreamq.WithMiddleware(layer("inner"), decrypt))
	s.start(c)
	s.add("body", `secret:{"id":9}`)
	if m := receiveOne(t, done, "handler"); m.Body.ID != 9 || string(m.Raw) != `{"id":9}` {
		t.Errorf("body %+v, raw %s", m.Body, m.Raw)
	}
	s.settled()
	mu.Lock()
	defer mu.Unlock()
	if got, want := strings.Join(steps, ", "), "outer in, inner in, handler, inner out <nil>, outer out <nil>"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Middleware sees what the decoder says, and may decide about it.
func TestMiddlewareSeesDecodingErrors(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	saw := make(chan error, 5)
	s.worker(func(context.Context, *xstreamq.Message[order]) error { return nil }, xstreamq.WithMiddleware(func(next xstreamq.Handler) xstreamq.Handler {
		return func(ctx context.Context, d *xstreamq.Delivery) error {
			if err := next(ctx, d); errors.Is(err, xstreamq.ErrInvalidBody) {
				saw <- err
				return xstreamq.Reject(err)
			}
			return nil
		}
	}))
	s.add("body", "no JSON")
	if err := receiveOne(t, saw, "the error"); !strings.Contains(err.Error(), "decode") {
		t.Error(err)
	}
	if l := s.dead(1)[0]; l.Reason != "rejected" || l.RC != 1 || !strings.Contains(l.Err, "invalid body") {
		t.Errorf("dead letter %+v", l)
	}
}

type ending struct {
	id      string
	attempt int
	outcome xstreamq.Outcome
	err     error
	took    time.Duration
	ctx     any
}

// watching is a client option whose hooks report handlings, and hand a context through.
func watching() (xstreamq.ClientOption, chan ending) {
	type key struct{}
	ends := make(chan ending, 1000)
	return xstreamq.WithHooks(xstreamq.Hooks{
		HandleStart: func(ctx context.Context, _ *xstreamq.Delivery) context.Context {
			return context.WithValue(ctx, key{}, "span")
		},
		HandleEnd: func(ctx context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, err error, took time.Duration) {
			ends <- ending{d.ID, d.Attempt, o, err, took, ctx.Value(key{})}
		},
	}), ends
}

// The end hook tells what happened to each delivery, when it has happened.
func TestHandleHooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opt, ends := watching()
	c := s.open(opt, xstreamq.WithHooks(xstreamq.Hooks{
		HandleStart: func(context.Context, *xstreamq.Delivery) context.Context { panic("a hook") },
	}))
	s.subscribe(c, func(_ context.Context, m *xstreamq.Message[order]) error {
		switch {
		case m.Body.ID == 1:
			return nil
		case m.Body.ID == 2:
			return fmt.Errorf("attempt %d", m.Attempt)
		case m.Body.ID == 3:
			return xstreamq.Reject(errors.New("never"))
		case m.Body.ID == 4 && m.Attempt == 1:
			return xstreamq.RetryAfter(time.Millisecond, errors.New("later"))
		}
		return nil
	}, xstreamq.MaxRetries(1))
	s.start(c)
	ids := s.publish(1, 4)
	noBody := s.add("foo", "bar")
	got := map[string][]string{}
	for _, e := range receive(t, ends, 7, "ends") {
		if e.ctx != "span" && e.id != noBody {
			t.Errorf("the end of %s has another context than its start", e.id)
		}
		got[e.id] = append(got[e.id], fmt.Sprintf("%d %s %v", e.attempt, e.outcome, e.err))
	}
	for id, want := range map[string]string{
		ids[0]: "1 acked <nil>", ids[1]: "1 failed attempt 1, 2 dead attempt 2", ids[2]: "1 rejected never",
		ids[3]: "1 failed later, 2 acked <nil>", noBody: "1 dead <nil>",
	} {
		if text := strings.Join(got[id], ", "); text != want {
			t.Errorf("message %s: %s\nwant %s", id, text, want)
		}
	}
}

// What was read ahead and not started is told to nobody.
func TestHandedBackUnstartedIsNoEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opt, ends := watching()
	c := s.open(opt)
	begun := make(chan struct{}, 1)
	release := make(chan struct{})
	s.subscribe(c, func(context.Context, *xstreamq.Message[order]) error {
		begun <- struct{}{}
		<-release
		return nil
	}, xstreamq.Concurrency(1))
	s.start(c)
	s.publish(1, 1)
	receiveOne(t, begun, "handler")
	s.addTo(s.keys.Retry, "body", `{"id":2}`) // read beside it: a count holds for each stream
	s.publish(3, 3)
	close(release)
	s.eventually(func() bool { return len(begun) > 0 || s.load().pending == 0 }, "go on")
	go func() {
		for range begun {
		}
	}()
	s.settled()
	for _, e := range receive(t, ends, 3, "ends") {
		if e.outcome != xstreamq.OutcomeAcked {
			t.Errorf("end %+v", e)
		}
	}
}
