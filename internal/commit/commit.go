// Package commit gathers what many goroutines want done at once: while one batch is on its way the next fills, and nobody
// waits for a timer.
package commit

import (
	"sync"
	"time"
)

// Group hands what is added to flush, one batch at a time, in order. Made by New.
type Group[T any] struct {
	flush func([]T)
	most  int

	mu      sync.Mutex
	idle    sync.Cond
	running bool
	pending []T
	spare   []T
}

// New makes a group whose batches hold at most most items. flush must not keep the slice.
func New[T any](most int, flush func([]T)) *Group[T] {
	g := &Group[T]{flush: flush, most: most}
	g.idle.L = &g.mu
	return g
}

// Add gives items to the next batch; it does not wait.
func (g *Group[T]) Add(items ...T) {
	g.mu.Lock()
	g.pending = append(g.pending, items...)
	start := !g.running && len(g.pending) > 0
	if start {
		g.running = true
	}
	g.mu.Unlock()
	if start {
		go g.run()
	}
}

func (g *Group[T]) run() {
	g.mu.Lock()
	for len(g.pending) > 0 {
		batch := g.pending
		g.pending, g.spare = g.spare[:0], nil
		g.mu.Unlock()
		for rest := batch; len(rest) > 0; {
			n := min(len(rest), g.most)
			g.flush(rest[:n])
			rest = rest[n:]
		}
		clear(batch)
		g.mu.Lock()
		if cap(batch) <= 4*g.most {
			g.spare = batch[:0]
		}
	}
	g.running = false
	g.idle.Broadcast()
	g.mu.Unlock()
}

// WaitFor is Wait for at most d.
func (g *Group[T]) WaitFor(d time.Duration) {
	done := make(chan struct{})
	go func() {
		g.Wait()
		close(done)
	}()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// Wait returns when nothing is pending or on its way.
func (g *Group[T]) Wait() {
	g.mu.Lock()
	for g.running {
		g.idle.Wait()
	}
	g.mu.Unlock()
}
