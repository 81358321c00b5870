// Package speed compares the queue with what users would pick instead, and with what the server itself can do: the same
// work, on the same machine, one after the other, several times.
package speed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Body is the size of a message, in bytes.
const Body = 128

// workers publish, and as many handle.
const workers = 64

// system is a queue that is measured from outside.
type system interface {
	publish(ctx context.Context, body []byte) error // returns once the server confirmed
	consume(ctx context.Context, handle func(body []byte)) error
	close()
}

func text() []byte {
	b := make([]byte, Body)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return b
}

// backlog has callers publish n messages that each wait for the server's word, then handlers that do nothing drain them.
// It returns messages a second of both.
func backlog(ctx context.Context, s system, n int) (published, drained float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body := text()
	var next atomic.Int64
	start := time.Now()
	if err := together(func() error {
		for next.Add(1) <= int64(n) {
			if err := s.publish(ctx, body); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return 0, 0, err
	}
	published = float64(n) / time.Since(start).Seconds()
	var done atomic.Int64
	end := make(chan struct{})
	failed := make(chan error, 1)
	start = time.Now()
	go func() {
		if err := s.consume(ctx, func([]byte) {
			if done.Add(1) == int64(n) {
				close(end)
			}
		}); err != nil {
			failed <- err
		}
	}()
	select {
	case <-end:
		return published, float64(n) / time.Since(start).Seconds(), nil
	case err = <-failed:
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-time.After(2 * time.Minute):
		err = fmt.Errorf("%d of %d messages were handled in two minutes", done.Load(), n)
	}
	return 0, 0, err
}

func together(f func() error) error {
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// paced publishes at a rate and returns the median and the 99th percentile, in ms, from the publish call to the handler.
func paced(ctx context.Context, s system, rate int, span time.Duration) (p50, p99 float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	base := time.Now()
	var mu sync.Mutex
	var seen []time.Duration
	failed := make(chan error, 1)
	go func() {
		if err := s.consume(ctx, func(b []byte) {
			d := time.Since(base) - time.Duration(binary.LittleEndian.Uint64(b)) //nolint:gosec // as it was written
			mu.Lock()
			seen = append(seen, d)
			mu.Unlock()
		}); err != nil {
			failed <- err
		}
	}()
	time.Sleep(500 * time.Millisecond) // consumers are not told of when they listen
	total := int(float64(rate) * span.Seconds())
	work := make(chan struct{}, total)
	go func() {
		defer close(work)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		start := time.Now()
		for sent := 0; sent < total && ctx.Err() == nil; {
			<-tick.C
			for due := min(total, int(time.Since(start).Seconds()*float64(rate))); sent < due; sent++ {
				work <- struct{}{}
			}
		}
	}()
	if err := together(func() error {
		for range work {
			body := text()
			binary.LittleEndian.PutUint64(body, uint64(time.Since(base))) //nolint:gosec // never before base
			if err := s.publish(ctx, body); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return 0, 0, err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		n := len(seen)
		mu.Unlock()
		if n >= total {
			break
		}
		select {
		case err := <-failed:
			return 0, 0, err
		default:
		}
		if time.Now().After(deadline) {
			return 0, 0, fmt.Errorf("%d of %d messages were handled", n, total)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return quantile(seen, .5), quantile(seen, .99), nil
}

// quantile in ms.
func quantile(d []time.Duration, q float64) float64 {
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))].Seconds() * 1000
}
