package engine

import (
	"context"
	"time"

	"github.com/xstreamq/xstreamq/internal/lua"
)

// watchdog ends handlers' time. A handler that starts while it sleeps has at least the handler timeout before it, and ends
// only move later, so sleeping until the earliest known end, at most one handler timeout, misses none.
func (s *Sub) watchdog() {
	most := s.cfg.HandlerTimeout
	if most <= 0 {
		return
	}
	t := time.NewTimer(most)
	defer t.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-t.C:
		}
		next := time.Now().Add(most)
		for _, sl := range s.slots {
			if at := s.checkSlot(sl); !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		t.Reset(max(time.Until(next), time.Millisecond))
	}
}

// checkSlot cancels a handler whose time is up, fails its message half a visibility later when it has not returned, and says
// when to look again (zero = nothing to wait for).
func (s *Sub) checkSlot(sl *slot) time.Time {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	r := sl.run
	if r == nil || sl.stuck {
		return time.Time{}
	}
	end := r.Until()
	now := time.Now()
	if now.Before(end) {
		return end
	}
	r.cancel(ErrHandlerTimeout)
	late := end.Add(s.cfg.Visibility / 2)
	if now.Before(late) {
		return late
	}
	if context.Cause(r.ctx) != ErrHandlerTimeout { //nolint:errorlint // the cause is the sentinel itself
		return time.Time{} // lost or cut: settled otherwise
	}
	if r.settled.CompareAndSwap(false, true) {
		sl.stuck = true
		s.settle(r, Verdict{Verb: lua.Fail, Err: ErrHandlerTimeout}, now.Sub(r.started))
	}
	return time.Time{}
}

// stuck counts handlers that are deaf to their context.
func (s *Sub) stuck() int {
	n := 0
	for _, sl := range s.slots {
		sl.mu.Lock()
		if sl.stuck {
			n++
		}
		sl.mu.Unlock()
	}
	return n
}
