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
			at, late := s.checkSlot(sl)
			if late != nil {
				for _, r := range sl.giveUp(late) {
					s.settle(r, Verdict{Verb: lua.Fail, Err: ErrHandlerTimeout}, time.Since(r.started))
				}
			}
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		t.Reset(max(time.Until(next), time.Millisecond))
	}
}

// checkSlot cancels a handler whose time is up and says when to look again (zero = nothing to wait for). deaf leads deliveries
// to be failed: their handler has not returned half a visibility later.
func (s *Sub) checkSlot(sl *slot) (again time.Time, deaf *Run) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if len(sl.runs) == 0 || sl.stuck {
		return time.Time{}, nil
	}
	r := sl.runs[0]
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
	return time.Time{}, r
}
