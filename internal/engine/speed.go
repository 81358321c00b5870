package engine

import (
	"sync/atomic"
	"time"
)

// ahead is how much work, at the handlers' recent speed, may wait in the buffer.
const ahead = 20 * time.Millisecond

// readBytes is about how much one read may bring.
const readBytes = 4 << 20

// firstRead is the most entries of the first read, before sizes are known.
const firstRead = 8

// readEntries is the most of any: the server takes about 3 µs for each and does nothing else meanwhile.
const readEntries = 1000

// average is a moving average. A lost update among many does no harm.
type average struct{ v atomic.Int64 }

func (a *average) add(x int64) {
	if old := a.v.Load(); old != 0 {
		x = old + (x-old)/8
	}
	a.v.Store(max(1, x))
}

// speed is what the subscription knows of its messages: how long handlers take, in ns, and how large bodies are.
type speed struct{ took, size average }

// ran takes in how long a handler took. One quick run says little: the average begins where nothing much is read ahead.
func (s *speed) ran(took time.Duration) {
	s.took.v.CompareAndSwap(0, int64(max(ahead, took)))
	s.took.add(int64(took))
}

// prefetch is how many entries more than free handlers may be read: none while handlers are slow.
func (s *speed) prefetch(concurrency, most int) int {
	ns := s.took.v.Load()
	if ns == 0 {
		return 0
	}
	return int(min(int64(most), int64(concurrency)*int64(ahead)/ns))
}

// roomLocked is how many entries may be read now.
func (s *Sub) roomLocked() int {
	room := s.wanted - s.buffer.len()
	if s.cfg.Concurrency > 0 {
		slots, free := len(s.slots), s.cfg.Gate.slots(len(s.slots)-s.busy, s.buffer.len() < s.cfg.Batch)
		if s.cfg.Gate != nil {
			slots = min(slots, s.cfg.Gate.most)
		}
		room = free*s.cfg.Batch + s.speed.prefetch(slots, s.cfg.Prefetch) - s.buffer.len()
		if unsettled := s.active - s.busy; unsettled > 2*(len(s.slots)*s.cfg.Batch+s.cfg.Prefetch)+1024 {
			return 0 // the server takes no settlements: what is read would only pile up
		}
	}
	bytes := s.speed.size.v.Load()
	if bytes == 0 {
		bytes = readBytes / firstRead
	}
	return max(0, min(room, readEntries, max(1, readBytes/int(bytes))))
}
