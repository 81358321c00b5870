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
			at, deaf := s.checkSlot(sl)
			if deaf != nil {
				s.settle(deaf, Verdict{Verb: lua.Fail, Err: ErrHandlerTimeout}, time.Since(deaf.started))
			}
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		t.Reset(max(time.Until(next), time.Millisecond))
	}
}

// checkSlot cancels a handler whose time is up and says when to look again (zero = nothing to wait for). deaf is a delivery
// to be failed: its handler has not returned half a visibility later.
func (s *Sub) checkSlot(sl *slot) (again time.Time, deaf *Run) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	r := sl.run
	if r == nil || sl.stuck {
		return time.Time{}, nil
	}
	now, end := time.Now(), r.Until()
	if now.Before(end) {
		return end, nil
	}
	r.cancel(ErrHandlerTimeout)
	if late := end.Add(s.cfg.Visibility / 2); now.Before(late) {
		return late, nil
	}
	if context.Cause(r.ctx) != ErrHandlerTimeout { //nolint:errorlint // the cause is the sentinel itself
		return time.Time{}, nil // lost or cut: settled otherwise
	}
	if r.settled.CompareAndSwap(false, true) {
		sl.stuck = true
		return time.Time{}, r
	}
	return time.Time{}, nil
}
