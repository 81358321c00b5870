package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/xstreamq/xstreamq/internal/engine"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// Pull reads at your own pace, without Run. Its leases, retries and sweeps run from the first Receive to Stop. Options that are
// a handler's (Concurrency, Prefetch, HandlerTimeout, WithMiddleware, BatchSize, BatchWait) are ErrInvalidOption. Errors: as
// Subscribe's.
func (q *Queue[T]) Pull(group string, opts ...SubscribeOption) (*Puller[T], error) {
	k, cfg, err := q.intake("Pull", group, false, opts)
	if err != nil {
		return nil, err
	}
	s, err := q.c.subscribe(k, q.cfg.retain, cfg, nil)
	if err != nil {
		return nil, err
	}
	return &Puller[T]{s, q.body}, nil
}

// Puller is the third intake. Safe for concurrent use. The zero value answers ErrClosed.
type Puller[T any] struct {
	s    *Subscription
	body contract[T]
}

// Receive waits for at least one message and returns no more than most (1 to 100,000); nil and ctx's error when ctx ends first. What
// was on its way then is returned by the next Receive, or handed back within about two seconds, with nothing counted. Bodies
// that cannot be decoded are failed attempts, and not returned. A message whose workers died twice or more in a row is handed
// over when all others are settled, and nothing else until it is settled.
// Errors: ctx's, ErrInvalidOption, ErrClosed after Stop, and what ends a subscription: ErrGroupRemoved, ErrAuth,
// ErrUnsupportedServer, ErrFormat.
func (p *Puller[T]) Receive(ctx context.Context, most int) ([]*Received[T], error) {
	if most < 1 || most > 100_000 {
		return nil, invalid("Receive", most, "1 to 100000")
	}
	sub, err := p.running()
	if err != nil {
		return nil, err
	}
	for {
		runs, err := sub.Receive(ctx, most)
		switch {
		case errors.Is(err, engine.ErrStopped):
			return nil, p.closed()
		case err != nil:
			return nil, err
		}
		out := make([]*Received[T], 0, len(runs))
		for _, r := range runs {
			m, _, err := message(context.WithoutCancel(ctx), p.s, p.body, r)
			if err != nil {
				r.Fail(err)
				continue
			}
			out = append(out, &Received[T]{*m})
		}
		if len(out) > 0 {
			return out, nil
		}
	}
}

// running starts the loops the first time.
func (p *Puller[T]) running() (*engine.Sub, error) {
	if p == nil || p.s == nil {
		return nil, fmt.Errorf("%w: the puller was not made by Pull", ErrClosed)
	}
	c := p.s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase >= stopping {
		return nil, p.closed()
	}
	base := c.base
	if base == nil {
		base = context.Background()
	}
	p.s.start(base)
	if p.s.sub == nil {
		return nil, p.closed()
	}
	return p.s.sub, nil
}

func (p *Puller[T]) closed() error {
	return fmt.Errorf("receive from %s/%s: %w: the puller was stopped", p.s.ref.Stream, p.s.ref.Group, ErrClosed)
}

// All yields one message at a time until ctx ends. An error that it yields ends it: see Receive.
func (p *Puller[T]) All(ctx context.Context) iter.Seq2[*Received[T], error] {
	return func(yield func(*Received[T], error) bool) {
		for {
			list, err := p.Receive(ctx, 1)
			if err != nil {
				if ctx.Err() == nil {
					yield(nil, err)
				}
				return
			}
			if !yield(list[0], nil) {
				return
			}
		}
	}
}

// Stop ends the puller and hands back at once what was not settled, with nothing counted; so does the client's Stop or Close.
// The same group may then be read again. Errors: ErrDrainTimeout when the server did not take it back in time, ErrClosed on
// a zero puller.
func (p *Puller[T]) Stop(ctx context.Context) error {
	if p == nil {
		return ErrClosed
	}
	return p.s.Stop(ctx)
}

// Received is a pulled message: only here is settling yours. It has no time limit of its own: its lease goes on until it is
// settled, the puller stops or the process dies. Extend changes nothing.
type Received[T any] struct{ Message[T] }

// Ack is the message's success. Ack, Retry, Reject and Release settle once: a second call, or one after the lease, is
// ErrLeaseExpired. They return when the server has answered, or with ctx's error: the settlement then goes on by itself. On a
// message made by hand they do nothing.
func (r *Received[T]) Ack(ctx context.Context) error {
	return r.settle(ctx, engine.Verdict{Verb: lua.Ack})
}

// Retry fails the attempt for cause. The next comes after a time (1 ms to 10 years; out of it, the nearest), 0 means the
// group's backoff; a negative one is ErrInvalidOption.
func (r *Received[T]) Retry(ctx context.Context, after time.Duration, cause error) error {
	if after < 0 {
		return invalid("Retry", after, "0 (the group's backoff) or more")
	}
	v := engine.Verdict{Verb: lua.Fail, Given: after > 0, Err: orElse(cause, errRetried)}
	if v.Given {
		v.Delay = boundDelay(after)
	}
	return r.settle(ctx, v)
}

// Reject dead-letters it for cause, with the reason "rejected".
func (r *Received[T]) Reject(ctx context.Context, cause error) error {
	return r.settle(ctx, verdict(Reject(orElse(cause, errRejected))))
}

// Release hands it back with nothing counted: it is to be read again at once, by any worker of the group.
func (r *Received[T]) Release(ctx context.Context) error {
	return r.settle(ctx, engine.Verdict{Verb: lua.Release})
}

var (
	errRetried  = errors.New("retried, no cause given")
	errRejected = errors.New("rejected, no cause given")
)

// orElse is err, which must be one that can be asked for its text, or what stands for none.
func orElse(err, none error) error {
	if err = protect(func() error { return err }); err == nil {
		return none
	}
	return err
}

func (r *Received[T]) settle(ctx context.Context, v engine.Verdict) error {
	if r == nil || r.run == nil {
		return ctx.Err()
	}
	if err := r.run.Settle(ctx, v); err != nil {
		return fmt.Errorf("settle message %s of %s/%s: %w", r.ID, r.Stream, r.Group, err)
	}
	return nil
}
