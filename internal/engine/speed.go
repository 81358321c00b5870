package engine

import (
	"sync/atomic"
	"time"
)

// ahead is how much work, at the handlers' recent speed, may wait in the buffer.
const ahead = 20 * time.Millisecond

// speed is a moving average of how long handlers take.
type speed struct{ ns atomic.Int64 }

func (s *speed) add(took time.Duration) {
	old := s.ns.Load()
	if old == 0 {
		s.ns.Store(max(1, int64(took)))
		return
	}
	s.ns.Store(max(1, old+(int64(took)-old)/8)) // a lost update among many does no harm
}

// prefetch is how many entries more than free handlers may be read: none while handlers are slow.
func (s *speed) prefetch(concurrency, most int) int {
	ns := s.ns.Load()
	if ns == 0 {
		return 0
	}
	return int(min(int64(most), int64(concurrency)*int64(ahead)/ns))
}

// roomLocked is how many entries may be read now.
func (s *Sub) roomLocked() int {
	room := len(s.slots) - s.busy + s.speed.prefetch(len(s.slots), s.cfg.Prefetch) - s.buffer.len()
	if unsettled := s.active - s.busy; unsettled > 2*(len(s.slots)+s.cfg.Prefetch)+1024 {
		return 0 // the server takes no settlements: what is read would only pile up
	}
	return room
}
