package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

// times are what handlers saw of messages that carry when they were published.
type times struct {
	base time.Time
	mu   sync.Mutex
	all  []time.Duration
}

func (t *times) stamp(size int) []byte {
	b := body(max(8, size))
	binary.LittleEndian.PutUint64(b, uint64(time.Since(t.base))) //nolint:gosec // never before base
	return b
}

func (t *times) handle(_ context.Context, m *xstreamq.Message[[]byte]) error {
	d := time.Since(t.base) - time.Duration(binary.LittleEndian.Uint64(m.Body)) //nolint:gosec // as it was written
	t.mu.Lock()
	t.all = append(t.all, d)
	t.mu.Unlock()
	return nil
}

func (t *times) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.all)
}

// report gives the quantiles, in ms.
func (t *times) report(b *bench) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.Sort(t.all)
	for _, q := range []struct {
		name string
		at   float64
	}{{"-p50", .5}, {"-p99", .99}, {"-max", 1}} {
		b.result(q.name, t.all[int(q.at*float64(len(t.all)-1))].Seconds()*1000, millis)
	}
}

func (b *bench) listen(opts ...xstreamq.SubscribeOption) (*times, error) {
	t := &times{base: time.Now()}
	if _, err := b.q.Subscribe(group, t.handle, opts...); err != nil {
		return nil, err
	}
	return t, b.c.Start(b.ctx)
}

// all waits until n were handled.
func (b *bench) all(t *times, n int) error {
	for deadline := time.Now().Add(time.Minute); t.count() < n; {
		if time.Now().After(deadline) {
			return fmt.Errorf("only %d of %d messages were handled", t.count(), n)
		}
		if err := b.sleep(time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// latency is from the publish call to the handler's start at a fixed rate. What is still to be handled when the last was
// published is the backlog: it should be next to nothing.
func (b *bench) latency() error {
	t, err := b.listen(xstreamq.Concurrency(handlers))
	if err != nil {
		return err
	}
	total := max(1, int(float64(b.o.Rate)*b.o.For.Seconds()))
	work := make(chan struct{}, total)
	failed := make(chan error, handlers)
	var wg sync.WaitGroup
	for range handlers {
		wg.Go(func() {
			for range work {
				if _, err := b.q.Publish(b.ctx, t.stamp(b.o.Size)); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	start := time.Now()
	for sent := 0; sent < total && b.ctx.Err() == nil; {
		<-tick.C
		for due := min(total, int(time.Since(start).Seconds()*float64(b.o.Rate))); sent < due; sent++ {
			work <- struct{}{}
		}
		b.progress(sent, total)
	}
	close(work)
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	secs, behind := time.Since(start).Seconds(), total-t.count()
	if err := b.all(t, total); err != nil {
		return err
	}
	t.report(b)
	b.result("-rate", float64(total)/secs, perSecond)
	b.result("-backlog", float64(behind), "messages")
	return b.empty()
}

// latencyIdle is the same of lone messages on a queue that has nothing else to do.
func (b *bench) latencyIdle() error {
	t, err := b.listen(xstreamq.Concurrency(handlers))
	if err != nil {
		return err
	}
	n := min(300, b.o.Messages)
	for i := range n {
		b.progress(i, n)
		if err := b.sleep(10 * time.Millisecond); err != nil {
			return err
		}
		if _, err := b.q.Publish(b.ctx, t.stamp(b.o.Size)); err != nil {
			return err
		}
		if err := b.all(t, i+1); err != nil {
			return err
		}
	}
	t.report(b)
	return b.empty()
}

// idle counts the commands that a subscription sends while nothing happens.
func (b *bench) idle() error {
	if _, err := b.listen(); err != nil {
		return err
	}
	if err := b.sleep(min(3*time.Second, b.o.For)); err != nil { // what a start takes
		return err
	}
	before, start, span := b.wire.commands.Load(), time.Now(), 2*b.o.For
	for time.Since(start) < span {
		b.progress(int(time.Since(start).Milliseconds()), int(span.Milliseconds()))
		if err := b.sleep(100 * time.Millisecond); err != nil {
			return err
		}
	}
	b.result("-commands", float64(b.wire.commands.Load()-before)/time.Since(start).Seconds(), "commands/s")
	return nil
}
