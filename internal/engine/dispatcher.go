package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/lua"
)

const (
	sourceMain  = lua.Main
	sourceRetry = lua.Retry
)

// push takes what a read brought and wakes as many workers as it needs.
func (s *Sub) push(inc *incarnation, runs []*Run) {
	s.mu.Lock()
	for _, r := range runs {
		inc.held[r.key()] = r
	}
	if s.stopping || s.paused || s.current != inc { // came too late to be started
		if inc.isVoid() { // read under a name that was left: it is looked at once more
			s.leftover = append(s.leftover, inc)
			s.nudge()
		}
		s.mu.Unlock()
		s.handBack(runs)
		return
	}
	for _, r := range runs {
		s.buffer.push(r)
	}
	if r, _ := s.buffer.front(); r.Msg.Lost >= suspectAt {
		s.holding = true // the next read would be under way already when a worker picks it
	}
	for n := min(s.buffer.len(), len(s.slots)) - s.idle; n > 0 && s.spawned < len(s.slots); n-- {
		sl := s.slots[s.spawned]
		s.spawned++
		go s.worker(sl) // not one of the loops: a handler deaf to its context is left
	}
	s.cond.Broadcast()
	s.mu.Unlock()
}

// worker runs one handler after the other.
func (s *Sub) worker(sl *slot) {
	over := false
	defer func() {
		if !over { // a handler ended its goroutine: another one takes the slot
			go s.worker(sl)
		}
	}()
	for {
		r := s.next()
		if r == nil {
			over = true
			return
		}
		s.serve(sl, r)
	}
}

func (s *Sub) serve(sl *slot, r *Run) {
	defer func() {
		s.mu.Lock()
		s.busy--
		if s.stopping || s.buffer.len() == 0 {
			s.cond.Broadcast()
		}
		s.mu.Unlock()
	}()
	s.handle(sl, r)
}

// next waits for something that may start; nil when the subscription stops.
func (s *Sub) next() *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.stopping {
			return nil
		}
		if r := s.pick(); r != nil {
			s.busy++
			s.active++
			return r
		}
		s.idle++
		s.cond.Wait()
		s.idle--
	}
}

// pick takes the front of the buffer when it may start: with at least half a lease left, and a suspect only by itself.
func (s *Sub) pick() *Run {
	r, q := s.buffer.front()
	if s.holding && s.heldForLocked() == nil { // what starts were held back for has left the buffer
		s.holding = false
		s.cond.Broadcast()
	}
	if r == nil || s.paused || s.alone != nil || s.current == nil || s.current.left(s.cfg.Visibility) < s.cfg.Visibility/2 {
		return nil
	}
	if r.Msg.Lost >= suspectAt {
		if s.active > 0 { // starts are held back until all that runs is settled
			s.holding = true
			return nil
		}
		r.alone = true
		s.alone = r
		s.held, s.holding = "", false
	}
	q.pop()
	if r.alone || s.buffer.len() < s.roomLocked()/2 {
		s.cond.Broadcast() // the reader may fetch more
	}
	return r
}

// takeOldLocked takes what has waited too long, for a worker that may be idle. The suspect that starts are held back for is
// handed on too; when the same one comes again it is waited for twice as long, until all that runs has ended meanwhile.
func (s *Sub) takeOldLocked() []*Run {
	now := time.Now()
	r := s.heldForLocked()
	if r != nil {
		if r.Msg.ID != s.held {
			s.held, s.heldMost = r.Msg.ID, stale
		}
		if now.Sub(r.arrived) > s.heldMost {
			s.holding, s.heldMost, r = false, min(2*s.heldMost, time.Hour), nil
		}
	}
	return s.buffer.takeOld(now.Add(-stale), r)
}

// heldForLocked is the suspect that starts are held back for; nil when there is none.
func (s *Sub) heldForLocked() *Run {
	if r, _ := s.buffer.front(); r != nil && s.holding && r.Msg.Lost >= suspectAt {
		return r
	}
	return nil
}

// handle runs the handler of one delivery and settles it.
func (s *Sub) handle(sl *slot, r *Run) {
	if r.alone && !s.arm(r) {
		return
	}
	if !r.Msg.HasBody {
		s.settle(r, Verdict{Verb: lua.Bury, Reason: "no-body"}, 0)
		return
	}
	if s.cfg.DedupeTTL > 0 {
		done, ok := s.finished(r)
		if !ok {
			return
		}
		if done {
			s.settle(r, Verdict{Verb: lua.Ack, Reason: Skipped}, 0)
			return
		}
	}
	if isClosed(s.draining) { // a call before the start took until now
		s.drop(r)
		return
	}
	r.begin()
	sl.mu.Lock()
	sl.run = r
	sl.mu.Unlock()
	if r.inc.isVoid() { // lost since it was picked
		r.cancel(ErrLeaseExpired)
	}
	v := Verdict{Verb: lua.Fail, Err: errEnded}
	defer func() {
		took := time.Since(r.started)
		sl.mu.Lock()
		sl.run, sl.stuck = nil, false
		sl.mu.Unlock()
		s.speed.ran(took)
		if r.settled.CompareAndSwap(false, true) {
			s.settle(r, v.inTime(r.ctx), took)
		}
		r.cancel(nil)
	}()
	v = s.cfg.Handle(r.ctx, r)
}

// inTime makes a failed attempt of a run whose time was up before it returned: many handlers return nil when their context
// ends. What a handler decided about its message stands.
func (v Verdict) inTime(ctx context.Context) Verdict {
	if context.Cause(ctx) != ErrHandlerTimeout { //nolint:errorlint // the cause is the sentinel itself
		return v
	}
	switch {
	case v.Verb == lua.Ack:
		return Verdict{Verb: lua.Fail, Err: ErrHandlerTimeout}
	case v.Verb == lua.Fail && !errors.Is(v.Err, ErrHandlerTimeout):
		v.Err = fmt.Errorf("%w: %w", ErrHandlerTimeout, v.Err)
	}
	return v
}

// errEnded is the failure of a handler that neither returned nor panicked.
var errEnded = errors.New("the handler ended its goroutine (runtime.Goexit)")

// arm writes the suspect's id into the consumer's record before anything of it runs; false when it does not run here.
func (s *Sub) arm(r *Run) bool {
	if r.Source != sourceRetry {
		return true // only a producer's own counter puts a suspect into the main stream; reclaim parks them
	}
	for try := 0; ; try++ {
		var ok bool
		err := s.bounded(s.life, s.callTimeout(), func(ctx context.Context) (err error) {
			ok, err = lua.Arm(ctx, s.cfg.Redis, s.cfg.Keys, r.inc.name, r.Msg.EntryID)
			return err
		})
		if err == nil && ok {
			return true
		}
		if err == nil {
			s.lose(r.inc, "record gone")
		}
		if r.inc.isVoid() || !s.pauseFor(try) {
			s.drop(r)
			return false
		}
	}
}

// pauseFor waits a jittered backoff; false when the subscription stops meanwhile.
func (s *Sub) pauseFor(try int) bool {
	t := time.NewTimer(commit.Backoff(try))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.draining:
		return false
	}
}

// drop lets go of a delivery that was not started: handed back under its name, or void with it.
func (s *Sub) drop(r *Run) {
	if r.settled.CompareAndSwap(false, true) {
		s.settle(r, Verdict{Verb: lua.Release}, 0)
	}
}

// handBack releases deliveries that never started.
func (s *Sub) handBack(runs []*Run) {
	if len(runs) == 0 {
		return
	}
	s.mu.Lock()
	s.active += len(runs)
	s.mu.Unlock()
	for _, r := range runs {
		s.drop(r)
	}
}
