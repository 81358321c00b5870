package engine

import "sync"

// Gate caps how many handlers run at once over many subscriptions. Those that wait with something to start are served in turn.
type Gate struct {
	mu    sync.Mutex
	most  int
	free  int
	queue []*Sub
}

// NewGate makes a gate for most handlers.
func NewGate(most int) *Gate { return &Gate{most: most, free: most} }

// enterLocked takes a place for s, whose lock is held; without one, s waits in the queue.
func (g *Gate) enterLocked(s *Sub) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free == 0 || len(g.queue) > 0 && g.queue[0] != s {
		if !s.queued {
			s.queued = true
			g.queue = append(g.queue, s)
		}
		return false
	}
	g.free--
	g.unqueue(s)
	return true
}

// leaveLocked takes s, whose lock is held, out of the queue: it has nothing to start any more.
func (g *Gate) leaveLocked(s *Sub) {
	if s.queued {
		g.mu.Lock()
		g.unqueue(s)
		g.mu.Unlock()
	}
}

func (g *Gate) unqueue(s *Sub) {
	if s.queued {
		s.queued = false
		for i, x := range g.queue {
			if x == s {
				g.queue = append(g.queue[:i], g.queue[i+1:]...)
				break
			}
		}
	}
	g.wake()
}

// wake tells the first of the queue that there is a place. Not at once: the caller may hold another's lock.
func (g *Gate) wake() {
	if g.free > 0 && len(g.queue) > 0 {
		go g.queue[0].broadcast()
	}
}

// exit gives a place back.
func (g *Gate) exit() {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.free++
	g.wake()
	g.mu.Unlock()
}

// slots is how many of so many free slots may be filled: as many as there are places. One that has nothing to start may fill
// one all the same, so that it comes to stand in the queue.
func (g *Gate) slots(free int, short bool) int {
	if g == nil || free == 0 {
		return free
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(free, max(0, g.free-len(g.queue)))
	if n == 0 && short {
		return 1
	}
	return n
}
