package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Run starts every subscription, also those added later, until ctx ends, then drains up to DrainTimeout.
// Handlers see ctx's values, never its cancellation. It keeps trying while Redis is away.
// It returns nil after a clean drain, ErrDrainTimeout when handlers had to be cut, and, before its first read only, at once on
// what no waiting mends (ErrUnsupportedServer, ErrAuth, ErrFormat). A client runs once: a second Run is ErrClosed.
func (c *Client) Run(ctx context.Context) error {
	if _, err := c.begin(ctx); err != nil {
		return err
	}
	var cause error
	select {
	case <-ctx.Done():
	case cause = <-c.failed:
	case <-c.drained:
	}
	if err := c.Stop(context.WithoutCancel(ctx)); cause == nil {
		return err
	}
	return cause
}

// Start is Run's first half. ctx bounds only the start: it returns once every group exists and is being read,
// or with ctx's error, and then nothing runs.
func (c *Client) Start(ctx context.Context) error {
	subs, err := c.begin(ctx)
	if err != nil {
		return err
	}
	for _, s := range subs {
		if err := s.Ready(ctx); err != nil {
			gone, cancel := context.WithCancel(context.WithoutCancel(ctx))
			cancel()
			_ = c.Stop(gone) // the reason to tell is why it did not start
			return err
		}
	}
	return nil
}

func (c *Client) begin(ctx context.Context) ([]*Subscription, error) {
	if err := c.open(); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != fresh {
		return nil, fmt.Errorf("%w: a client runs once; it was started before", ErrClosed)
	}
	c.phase, c.base = running, context.WithoutCancel(ctx)
	subs := make([]*Subscription, 0, len(c.subs))
	for _, s := range c.subs {
		if !s.pull {
			s.start(c.base)
			subs = append(subs, s)
		}
	}
	return subs, nil
}

// Stop stops reading and hands back what never started at once, drains until ctx or DrainTimeout ends, then cancels the rest
// with cause ErrShutdown and waits one second more. A done ctx stops without draining. Publish and Admin work until Close.
// Idempotent. Errors: ErrDrainTimeout, ErrClosed on a zero client.
func (c *Client) Stop(ctx context.Context) error {
	if c == nil || c.rdb == nil {
		return c.open()
	}
	c.mu.Lock()
	if c.phase >= stopping {
		c.mu.Unlock()
		<-c.drained
		return c.drain
	}
	c.phase = stopping
	subs := make([]*Subscription, 0, len(c.subs))
	for _, s := range c.subs {
		subs = append(subs, s)
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, c.cfg.drain)
	defer cancel()
	errs := make([]error, len(subs))
	var all sync.WaitGroup
	for i, s := range subs {
		all.Go(func() { errs[i] = s.end(ctx) })
	}
	all.Wait()
	c.mu.Lock()
	if c.phase == stopping {
		c.phase = stopped
	}
	for _, err := range errs {
		if errors.Is(err, ErrDrainTimeout) {
			c.drain = ErrDrainTimeout
		}
	}
	close(c.drained)
	c.mu.Unlock()
	return c.drain
}

// Stopped is closed when Run or Stop is through.
func (c *Client) Stopped() <-chan struct{} {
	if c == nil || c.rdb == nil {
		done := make(chan struct{})
		close(done)
		return done
	}
	return c.drained
}

// Close stops (with DrainTimeout) what still runs, waits for publishes under way, closes what Open opened. Idempotent.
// Errors: ErrDrainTimeout, and what closing the connections gives.
func (c *Client) Close() error {
	if c == nil || c.rdb == nil {
		return nil
	}
	c.mu.Lock()
	was := c.phase
	c.mu.Unlock()
	if was == closed {
		return nil
	}
	err := c.Stop(context.Background())
	c.mu.Lock()
	was, c.phase = c.phase, closed
	c.mu.Unlock()
	if was == closed {
		return nil
	}
	c.publisher.wait(10 * time.Second)
	c.publisher.closeOwn()
	if c.owned {
		err = errors.Join(err, c.rdb.Close())
	}
	return err
}
