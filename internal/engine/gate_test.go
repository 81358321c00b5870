package engine

import (
	"sync"
	"testing"
	"time"
)

// Places go in turn: who waits with something to start is served before who comes later, and keeps nobody waiting once it has
// nothing more to start.
func TestGateServesInTurn(t *testing.T) {
	t.Parallel()
	g := NewGate(1)
	a, b, c := waiting(), waiting(), waiting()
	steps := []struct {
		what string
		got  bool
		want bool
	}{
		{"a takes the place", a.enter(g), true},
		{"b waits", b.enter(g), false},
		{"a waits behind b", a.enter(g), false},
		{"b goes on waiting", b.enter(g), false},
	}
	g.exit()
	b.woken(t)
	for _, x := range append(steps, []struct {
		what string
		got  bool
		want bool
	}{
		{"a is not served before b", a.enter(g), false},
		{"nor is c, which comes now", c.enter(g), false},
		{"b is", b.enter(g), true},
	}...) {
		if x.got != x.want {
			t.Errorf("%s: %v, want %v", x.what, x.got, x.want)
		}
	}
	g.exit()
	a.woken(t)
	a.mu.Lock()
	g.leaveLocked(a.Sub) // a pause took what it had
	a.mu.Unlock()
	c.woken(t)
	if !c.enter(g) || g.free != 0 || len(g.queue) != 0 {
		t.Errorf("c was not served: %+v", g)
	}
}

// waiter is a subscription with a worker that waits.
type waiter struct {
	*Sub
	woke chan struct{}
}

func waiting() waiter {
	w := waiter{&Sub{}, make(chan struct{}, 10)}
	w.cond.L = &w.mu
	var ready sync.WaitGroup
	ready.Add(1)
	go func() {
		w.mu.Lock()
		ready.Done()
		for {
			w.cond.Wait()
			w.woke <- struct{}{}
		}
	}()
	ready.Wait()
	w.mu.Lock() // it waits now
	defer w.mu.Unlock()
	return w
}

func (w waiter) enter(g *Gate) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return g.enterLocked(w.Sub)
}

func (w waiter) woken(t *testing.T) {
	t.Helper()
	select {
	case <-w.woke:
	case <-time.After(10 * time.Second):
		t.Fatal("it was not woken")
	}
}

// What may be read: as much as there are places that nobody stands in line for, and one where there are none, so that who comes
// late is in the queue when a place is given back, and needs no tick to look again.
func TestGateSlots(t *testing.T) {
	t.Parallel()
	g := NewGate(3)
	for _, x := range []struct {
		places, queue, free int
		short               bool
		want                int
	}{
		{3, 0, 8, true, 3},
		{3, 0, 2, true, 2},
		{3, 2, 8, true, 1},
		{1, 2, 8, true, 1},
		{1, 2, 8, false, 0},
		{0, 0, 8, true, 1},
		{0, 0, 8, false, 0},
		{0, 0, 0, true, 0},
		{3, 0, 0, true, 0},
	} {
		g.free, g.queue = x.places, make([]*Sub, x.queue)
		if n := g.slots(x.free, x.short); n != x.want {
			t.Errorf("%+v: %d", x, n)
		}
	}
	if n := (*Gate)(nil).slots(8, false); n != 8 {
		t.Errorf("without a cap: %d of 8", n)
	}
}
