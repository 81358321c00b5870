package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	now := time.Now()
	for _, r := range runs {
		r.arrived = now
		inc.hold(r)
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
	for range min(s.buffer.len(), s.idle) {
		s.work.Signal()
	}
	if s.cfg.Concurrency == 0 {
		s.wakeLocked() // who calls Receive
	}
	s.mu.Unlock()
}

// worker runs one handler after the other.
func (s *Sub) worker(sl *slot) {
	var runs []*Run
	defer func() {
		if len(runs) > 0 { // a handler ended its goroutine: another one takes the slot
			s.mu.Lock()
			s.servedLocked()
			s.mu.Unlock()
			go s.worker(sl)
		}
	}()
	for {
		if runs = s.next(runs); len(runs) == 0 {
			return
		}
		s.handle(sl, runs)
	}
}

// servedLocked gives back the place of a worker whose handler has ended.
func (s *Sub) servedLocked() {
	s.cfg.Gate.exit()
	s.busy--
	if s.stopping {
		s.wakeLocked()
	} else if s.buffer.len() == 0 {
		s.room.Signal()
	}
}

// next takes what a worker served, and waits for something that may start, in the same list; nothing when the subscription
// stops.
func (s *Sub) next(served []*Run) []*Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(served) > 0 {
		s.servedLocked()
	}
	clear(served)
	for runs := served[:0]; ; {
		if s.stopping {
			s.cfg.Gate.leaveLocked(s)
			return nil
		}
		if runs = s.pick(runs, s.cfg.Batch); len(runs) > 0 {
			s.busy++
			return runs
		}
		s.idle++
		s.work.Wait()
		s.idle--
	}
}

// pick takes the front of the buffer when it may start, at most so many that may start together: with at least half a lease
// left, and a suspect only by itself.
func (s *Sub) pick(runs []*Run, most int) []*Run {
	r, q := s.buffer.front()
	if s.holding && s.heldForLocked() == nil { // what starts were held back for has left the buffer
		s.holding = false
		s.wakeLocked()
	}
	if !s.mayStart(r, most) {
		s.cfg.Gate.leaveLocked(s)
		return runs
	}
	if !s.cfg.Gate.enterLocked(s) {
		return runs
	}
	if r.Msg.Lost >= suspectAt {
		r.alone = true
		s.alone = r
		s.held, s.holding = "", false
	}
	for first := r; ; {
		q.pop()
		runs = append(runs, r)
		if r, q = s.buffer.front(); len(runs) == most || r == nil || s.byItself(first) || s.byItself(r) {
			r = first
			break
		}
	}
	s.active += len(runs)
	if r.alone || s.buffer.len() < s.roomLocked()/2 || s.cfg.Gate != nil && s.buffer.len() < s.cfg.Batch {
		s.room.Signal()
	}
	return runs
}

func (s *Sub) mayStart(front *Run, most int) bool {
	if front == nil || s.paused || s.alone != nil || s.current == nil || s.current.left(s.cfg.Visibility) < s.cfg.Visibility/2 {
		return false
	}
	if s.cfg.ExpireAfter > 0 && s.clock.Load() == 0 {
		return false // how old it is shows with the first tick
	}
	if front.Msg.Lost >= suspectAt {
		s.holding = s.holding || s.active > 0 // starts are held back until all that runs is settled
		return s.active == 0
	}
	return s.gathered(front, most)
}

// byItself says that a delivery shares its run of the handler with no other: a suspect, or what failed once. So one that fails
// its batch each time fails but the first time with others.
func (s *Sub) byItself(r *Run) bool {
	return r.Msg.Lost >= suspectAt || s.cfg.Batch > 1 && r.Msg.RC > 0
}

// gathered says that what stands in the buffer need not wait for more: a batch is full, or has waited long enough.
func (s *Sub) gathered(front *Run, most int) bool {
	if s.cfg.BatchWait <= 0 || s.buffer.len() >= most || s.byItself(front) {
		return true
	}
	wait := time.Until(s.buffer.oldest().Add(s.cfg.BatchWait))
	if wait > 0 && !s.lingering {
		s.lingering = true
		time.AfterFunc(wait, func() {
			s.mu.Lock()
			s.lingering = false
			s.wakeLocked()
			s.mu.Unlock()
		})
	}
	return wait <= 0
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
	return s.buffer.takeOld(now.Add(-stale-s.cfg.BatchWait), r)
}

// heldForLocked is the suspect that starts are held back for; nil when there is none.
func (s *Sub) heldForLocked() *Run {
	if r, _ := s.buffer.front(); r != nil && s.holding && r.Msg.Lost >= suspectAt {
		return r
	}
	return nil
}

// handle runs the handler and settles its deliveries.
func (s *Sub) handle(sl *slot, runs []*Run) {
	if runs = s.startable(runs); len(runs) == 0 {
		return
	}
	lead := s.launch(runs)
	s.occupy(sl, runs)
	defer func() {
		took := time.Since(lead.started)
		sl.mu.Lock()
		sl.runs, sl.stuck = nil, false
		sl.mu.Unlock()
		s.speed.ran(took / time.Duration(len(runs)))
		for _, r := range runs {
			if r.settled.CompareAndSwap(false, true) {
				s.settle(r, r.Verdict.inTime(lead.ctx), took)
			}
		}
		lead.cancel(nil)
	}()
	s.cfg.Handle(lead.ctx, runs)
}

// startable settles what shall not start, and returns the rest in place.
func (s *Sub) startable(runs []*Run) []*Run {
	if runs[0].alone && !s.arm(runs[0]) {
		return nil
	}
	if s.cfg.DedupeTTL > 0 { // first: what is finished is no dead letter, however old
		runs = s.unfinished(runs)
	}
	oldest := time.Unix(0, s.clock.Load()).Add(time.Since(epoch) - s.cfg.ExpireAfter)
	runs = slices.DeleteFunc(runs, func(r *Run) bool {
		var reason string
		switch {
		case !r.Msg.HasBody:
			reason = "no-body"
		case s.cfg.ExpireAfter > 0 && r.Msg.Born().Before(oldest):
			reason = "expired"
		default:
			return false
		}
		s.settle(r, Verdict{Verb: lua.Bury, Reason: reason}, 0)
		return true
	})
	if isClosed(s.draining) { // a call before the start took until now
		for _, r := range runs {
			s.drop(r)
		}
		return nil
	}
	return runs
}

// occupy puts deliveries that begin into their slot.
func (s *Sub) occupy(sl *slot, runs []*Run) {
	sl.mu.Lock()
	sl.runs = runs
	sl.mu.Unlock()
	if runs[0].inc.isVoid() { // lost since it was picked
		s.forsake(sl, runs[0].inc)
	}
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
