package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/engine"
	"github.com/xstreamq/xstreamq/internal/keys"
)

// version is what lease records carry.
const version = "1"

// Subscribe registers h for group. No I/O: the group is made by Run or Start, or at once in the background when running.
// Errors: ErrInvalidName, ErrInvalidOption, ErrAlreadySubscribed (same stream and group in this client), ErrClosed.
func (q *Queue[T]) Subscribe(group string, h func(context.Context, *Message[T]) error, opts ...SubscribeOption) (*Subscription, error) {
	k, cfg, err := q.intake("Subscribe", group, h == nil, opts)
	if err != nil {
		return nil, err
	}
	body := q.body
	handle := func(ctx context.Context, m *Message[T]) (err error) {
		if m.Body, err = body.decode(m.Raw); err != nil {
			return err
		}
		return h(ctx, m)
	}
	wrapped := Handler(func(ctx context.Context, d *Delivery) error { return handle(ctx, &Message[T]{Delivery: *d}) })
	for _, m := range slices.Backward(cfg.middleware) {
		wrapped = m(wrapped)
	}
	cfg.batchSize, cfg.batchWait = 1, 0
	return q.c.subscribe(k, q.cfg.retain, cfg, func(s *Subscription, ctx context.Context, runs []*engine.Run) {
		for _, r := range runs {
			m := &Message[T]{Delivery: s.delivery(r)}
			ctx := s.startHandle(ctx, r, &m.Delivery)
			r.Verdict = verdict(protect(func() error {
				if len(cfg.middleware) > 0 { // else the message need not be made twice
					return wrapped(ctx, &m.Delivery)
				}
				return handle(ctx, m)
			}))
		}
	})
}

// intake is what the three ways to take messages have in common: it checks names and options.
func (q *Queue[T]) intake(call, group string, noHandler bool, opts []SubscribeOption) (keys.Group, subscribeConfig, error) {
	cfg := newSubscribeConfig()
	if err := q.ready(); err != nil {
		return keys.Group{}, cfg, err
	}
	if noHandler {
		return keys.Group{}, cfg, invalid(call, "nil", "a handler")
	}
	k, err := q.c.groupKeys(q.name, group)
	if err != nil {
		return k, cfg, err
	}
	if err := apply(&cfg, q.c.cfg.subscribe); err != nil {
		return k, cfg, err
	}
	cfg.own = nil // a default may be of no use to one subscription
	if err := apply(&cfg, opts); err != nil {
		return k, cfg, fmt.Errorf("subscribe %s/%s: %w", q.name, group, err)
	}
	return k, cfg, cfg.fits(call)
}

// Subscription is one running (stream, group).
type Subscription struct {
	c    *Client
	k    keys.Group
	cfg  subscribeConfig
	ref  GroupRef
	make func(base context.Context) *engine.Sub
	pull bool // started by its first Receive

	mu      sync.Mutex
	sub     *engine.Sub
	started chan struct{} // closed with the start
	stopped chan struct{}
	ended   bool
	tell    *commit.Group[string] // dead letters on their way to who asked; nil = nobody did
	news    *commit.Group[func()] // calls of hooks that the lease must not wait for; nil = there are no hooks
}

// handling runs a handler for the deliveries that it is given, and leaves its word in each one's Verdict; nil: they are pulled.
type handling func(s *Subscription, ctx context.Context, runs []*engine.Run)

func (c *Client) subscribe(k keys.Group, retain string, cfg subscribeConfig, h handling) (*Subscription, error) {
	s := &Subscription{
		c: c, k: k, cfg: cfg, ref: GroupRef{Stream: k.Name, Group: k.Group}, pull: h == nil,
		started: make(chan struct{}), stopped: make(chan struct{}),
	}
	s.make = func(base context.Context) *engine.Sub { return engine.New(base, s.engineConfig(base, retain, h)) }
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase >= stopping {
		return nil, fmt.Errorf("subscribe %s/%s: %w: the client was stopped", k.Name, k.Group, ErrClosed)
	}
	if had, taken := c.subs[s.ref]; taken && !had.over() {
		return nil, fmt.Errorf("%w: stream %s, group %s; one subscription with more Concurrency does the same", ErrAlreadySubscribed, k.Name, k.Group)
	}
	c.subs[s.ref] = s
	if c.phase == running && !s.pull {
		s.start(c.base)
	}
	return s, nil
}

// start starts it the first time; it is called under the client's lock.
func (s *Subscription) start(base context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.sub != nil {
		return
	}
	s.sub = s.make(base)
	s.sub.Start()
	close(s.started)
	go func(sub *engine.Sub) {
		<-sub.Done()
		s.mu.Lock()
		s.closeOnce()
		s.mu.Unlock()
		if err := sub.Err(); err != nil && !errors.Is(err, ErrGroupRemoved) && !s.pull {
			select {
			case s.c.failed <- err: // Run ends of it
			default:
			}
		}
	}(s.sub)
}

func (s *Subscription) closeOnce() {
	if !s.over() {
		close(s.stopped)
	}
}

func (s *Subscription) over() bool {
	select {
	case <-s.stopped:
		return true
	default:
		return false
	}
}

// Ready returns when the group exists and is being read, with ctx's error when that ends first, or with what ended the
// subscription.
func (s *Subscription) Ready(ctx context.Context) error {
	if s == nil || s.c == nil {
		return ErrClosed
	}
	select {
	case <-s.started:
	case <-s.stopped:
		return fmt.Errorf("subscription %s/%s: %w", s.ref.Stream, s.ref.Group, ErrClosed)
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-s.sub.Ready():
		return nil
	case <-s.sub.Done():
		if err := s.sub.Err(); err != nil {
			return err
		}
		return fmt.Errorf("subscription %s/%s: %w", s.ref.Stream, s.ref.Group, ErrClosed)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop ends this subscription alone, as Client.Stop does; the same group may then be subscribed again.
func (s *Subscription) Stop(ctx context.Context) error {
	if s == nil || s.c == nil {
		return ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, s.c.cfg.drain)
	defer cancel()
	err := s.end(ctx)
	s.c.mu.Lock()
	if s.c.subs[s.ref] == s {
		delete(s.c.subs, s.ref)
	}
	s.c.mu.Unlock()
	return err
}

func (s *Subscription) end(ctx context.Context) error {
	s.mu.Lock()
	s.ended = true
	sub := s.sub
	if sub == nil {
		s.closeOnce()
	}
	s.mu.Unlock()
	if sub == nil {
		return nil
	}
	err := sub.Stop(ctx)
	d := time.Second
	if until, ok := ctx.Deadline(); ok && ctx.Err() == nil {
		d = max(d, time.Until(until))
	}
	if s.tell != nil {
		s.tell.WaitFor(d)
	}
	if s.news != nil {
		s.news.WaitFor(time.Second)
	}
	s.mu.Lock()
	s.closeOnce()
	s.mu.Unlock()
	return err
}

// Stopped is closed when the subscription has ended; Err then says why (nil, ErrGroupRemoved).
func (s *Subscription) Stopped() <-chan struct{} {
	if s == nil || s.c == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	return s.stopped
}

// Err is nil while it runs and after a Stop; ErrClosed on a zero subscription.
func (s *Subscription) Err() error {
	if s == nil || s.c == nil {
		return ErrClosed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sub == nil {
		return nil
	}
	return s.sub.Err()
}

func (s *Subscription) engineConfig(base context.Context, retain string, h handling) engine.Config {
	c, cfg := s.c, s.cfg
	visibility, handlerTimeout := cfg.visibility, cfg.handlerTimeout
	if cfg.noVisibility {
		visibility = engine.NoVisibility
	} else if handlerTimeout == 0 {
		handlerTimeout = visibility
	}
	backoff := cfg.backoff
	first := visibility
	if e, ok := backoff.(Exponential); ok {
		e = e.withDefaults(visibility)
		backoff, first = e, e.Initial
	}
	gate := c.gate
	if s.pull {
		cfg.concurrency, handlerTimeout, gate = 0, 0, nil
	}
	return engine.Config{
		Redis: c.rdb, Keys: s.k, ConsumerPrefix: c.cfg.consumerPrefix, Version: version,
		From: string(cfg.from), Retain: retain,
		Visibility: visibility, HandlerTimeout: handlerTimeout, Interval: c.cfg.interval,
		MaxRetries: cfg.maxRetries, MaxLost: cfg.maxLost, MaxParked: cfg.maxParked,
		Concurrency: cfg.concurrency, Batch: cfg.batchSize, BatchWait: cfg.batchWait, Gate: gate, Prefetch: cfg.prefetch,
		DedupeTTL: cfg.dedupeTTL, ExpireAfter: cfg.expireAfter,
		SuspectFirst: first, SuspectMost: 5 * time.Minute,
		Backoff: boundBackoff(backoff),
		Handle:  func(ctx context.Context, runs []*engine.Run) { h(s, ctx, runs) },
		Watch:   s.watch(base),
		Log:     c.log,
	}
}

// handled is what a run carries from its start to its settlement.
type handled struct {
	ctx context.Context //nolint:containedctx // handed to the end hooks
	d   *Delivery
}

// startHandle tells the start hooks of a delivery, which they may change.
func (s *Subscription) startHandle(ctx context.Context, r *engine.Run, d *Delivery) context.Context {
	if s.c.hooks.any() {
		ctx = s.c.hooks.handleStart(ctx, d)
		seen := *d // what the end hooks see: the handler has the other, and may outlive its end
		r.Carry.Store(handled{ctx, &seen})
	}
	return ctx
}

// protect makes an error of a panic.
func protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	if err = f(); err != nil {
		_, _ = err.Error(), errors.Is(err, ErrShutdown) // one that cannot be asked (often a nil pointer in the interface) panics here
	}
	return err
}
