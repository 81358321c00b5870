package bench

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

const (
	handlers  = 64
	dedupeTTL = 10 * time.Minute
)

func sha1Hex(s string) string {
	sum := sha1.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// counted is a handler's bookkeeping: when the first message came, and when the last of n.
type counted struct {
	n     int64
	done  atomic.Int64
	first atomic.Int64 // ns since at
	at    time.Time
	end   chan struct{}
}

func count(n int) *counted { return &counted{n: int64(n), at: time.Now(), end: make(chan struct{})} }

func (c *counted) one() {
	done := c.done.Add(1)
	if done == 1 {
		c.first.Store(int64(time.Since(c.at)))
	}
	if done == c.n {
		close(c.end)
	}
}

// wait returns when n messages were handled.
func (b *bench) wait(c *counted) error {
	t := time.NewTicker(100 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-c.end:
			return nil
		case <-b.ctx.Done():
			return context.Cause(b.ctx)
		case <-t.C:
			b.progress(int(c.done.Load()), int(c.n))
		}
	}
}

// empty waits until the server holds nothing of the group any more: all was acked.
func (b *bench) empty() error {
	for deadline := time.Now().Add(30 * time.Second); ; {
		d, err := b.c.Admin().Group(b.stream, group).Depth(b.ctx)
		if err != nil {
			return err
		}
		if d.Lag != nil && *d.Lag == 0 && d.Pending+d.Retry+d.Retrying+d.Dead == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("handled, but not all was acked: %+v", d)
		}
		if err := b.sleep(10 * time.Millisecond); err != nil {
			return err
		}
	}
}

func (b *bench) sleep(d time.Duration) error {
	select {
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	case <-time.After(d):
		return nil
	}
}

// drain is from the worker's start until the last of a backlog is in its handler; that all of it was acked is checked.
func (b *bench) drain(size int, opts ...xstreamq.SubscribeOption) error {
	n := b.bounded(size)
	if err := b.fill(n, size, b.name == "drain-dedupe"); err != nil {
		return err
	}
	c := count(n)
	opts = append(opts, xstreamq.Concurrency(handlers))
	_, err := b.q.Subscribe(group, func(context.Context, *xstreamq.Message[[]byte]) error {
		c.one()
		return nil
	}, opts...)
	if err != nil {
		return err
	}
	m := begin()
	if err := b.c.Start(b.ctx); err != nil {
		return err
	}
	if err := b.wait(c); err != nil {
		return err
	}
	m.end(b, n)
	return b.empty()
}

var errFailing = errors.New("made to fail")

// failing has a quarter of the messages fail once; a message counts when it is done.
func (b *bench) failing() error {
	n := b.bounded(b.o.Size)
	if err := b.fill(n, b.o.Size, false); err != nil {
		return err
	}
	c := count(n)
	var turn atomic.Int64
	_, err := b.q.Subscribe(group, func(_ context.Context, m *xstreamq.Message[[]byte]) error {
		if m.Attempt == 1 && turn.Add(1)%4 == 0 {
			return errFailing
		}
		c.one()
		return nil
	}, xstreamq.Concurrency(handlers), xstreamq.WithBackoff(xstreamq.BackoffFunc(func(int, error) time.Duration { return 10 * time.Millisecond })))
	if err != nil {
		return err
	}
	m := begin()
	if err := b.c.Start(b.ctx); err != nil {
		return err
	}
	if err := b.wait(c); err != nil {
		return err
	}
	m.end(b, n)
	return b.empty()
}

// reclaim has a consumer read all and never be heard of again, which is what a worker that was killed leaves.
func (b *bench) reclaim() error {
	n := b.bounded(b.o.Size)
	if err := b.fill(n, b.o.Size, false); err != nil {
		return err
	}
	key := b.o.Prefix + "{" + b.stream + "}"
	if _, err := b.c.Admin().Group(b.stream, group).Create(b.ctx, xstreamq.Head); err != nil {
		return err
	}
	for read := 0; read < n; {
		b.progress(read, n)
		res, err := b.raw.XReadGroup(b.ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: "dead", Streams: []string{key, ">"}, Count: batch, Block: -1,
		}).Result()
		if err != nil {
			return fmt.Errorf("reading as the dead consumer: %w", err)
		}
		read += len(res[0].Messages)
	}
	return b.recovered(n, xstreamq.VisibilityTimeout(2*time.Second))
}

// recovered measures from the first to the last message that comes: what is before depends on leases and due times alone.
func (b *bench) recovered(n int, opts ...xstreamq.SubscribeOption) error {
	c := count(n)
	_, err := b.q.Subscribe(group, func(context.Context, *xstreamq.Message[[]byte]) error {
		c.one()
		return nil
	}, append(opts, xstreamq.Concurrency(handlers))...)
	if err != nil {
		return err
	}
	if err := b.c.Start(b.ctx); err != nil {
		return err
	}
	if err := b.wait(c); err != nil {
		return err
	}
	took := time.Since(c.at) - time.Duration(c.first.Load())
	b.result("", float64(n)/took.Seconds(), perSecond)
	return b.empty()
}

// promote has all messages fall due at one moment.
func (b *bench) promote() error {
	n := b.bounded(b.o.Size)
	began := time.Now()
	due := began.Add(5*time.Second + time.Duration(n)*200*time.Microsecond) // 5,000 a second: later than any server needs
	text := body(b.o.Size)
	for done := 0; done < n; {
		b.progress(done, n)
		all := make([][]byte, min(batch, n-done))
		for i := range all {
			all[i] = text
		}
		if _, err := b.q.PublishBatch(b.ctx, all, xstreamq.DeliverAt(due)); err != nil {
			return err
		}
		done += len(all)
	}
	if time.Now().After(due) {
		return fmt.Errorf("publishing %d delayed messages took %s, longer than their delay: use fewer --messages", n, time.Since(began))
	}
	return b.recovered(n)
}
