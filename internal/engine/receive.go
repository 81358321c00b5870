package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/internal/lua"
)

// Receive is the way out of a subscription without handlers: it waits for at least one delivery and takes at most most, each to
// be ended by Settle. Nothing is read while nobody waits. Errors: ctx's, what ended the subscription, ErrStopped.
func (s *Sub) Receive(ctx context.Context, most int) ([]*Run, error) {
	defer context.AfterFunc(ctx, s.broadcast)()
	for {
		runs, err := s.awaitAny(ctx, most)
		if err != nil {
			return nil, err
		}
		started := make(chan []*Run, 1)
		go func() { started <- s.startPulled(runs) }() // it may have to ask the server
		select {
		case runs = <-started:
		case <-ctx.Done():
			go func() {
				for _, r := range <-started {
					r.end(Verdict{Verb: lua.Release})
				}
			}()
			return nil, ctx.Err()
		}
		if len(runs) > 0 {
			return runs, nil
		}
	}
}

// awaitAny waits for something to hand over. What it wants and what it takes change together: a reader that came between the
// two would read as much again.
func (s *Sub) awaitAny(ctx context.Context, most int) ([]*Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted += most
	defer func() { s.wanted -= most }()
	s.room.Signal()
	for {
		switch {
		case s.err != nil:
			return nil, s.err
		case s.stopping:
			return nil, ErrStopped
		case ctx.Err() != nil:
			return nil, ctx.Err()
		}
		if runs := s.pick(nil, most); len(runs) > 0 {
			return runs, nil
		}
		s.cond.Wait()
	}
}

// startPulled begins each delivery by itself.
func (s *Sub) startPulled(runs []*Run) []*Run {
	runs = s.startable(runs)
	slots := make([]*slot, len(runs))
	for i := range runs {
		slots[i] = &slot{runs: runs[i : i+1 : i+1]}
		s.launch(slots[i].runs)
	}
	s.mu.Lock()
	stopped := s.stopping
	for i, r := range runs {
		if !stopped {
			s.pulled[r] = slots[i]
		}
	}
	s.mu.Unlock()
	for i, r := range runs {
		switch {
		case stopped:
			s.drop(r)
		case r.inc.isVoid(): // lost since it was picked
			s.forsake(slots[i], r.inc)
		}
	}
	if stopped {
		return nil
	}
	return runs
}

// releasePulled hands back what was not settled before the stop.
func (s *Sub) releasePulled() {
	s.mu.Lock()
	list := slices.Collect(maps.Keys(s.pulled))
	s.mu.Unlock()
	for _, r := range list {
		r.end(Verdict{Verb: lua.Release})
	}
}

// end settles a delivery that is not settled yet.
func (r *Run) end(v Verdict) {
	if r.settled.CompareAndSwap(false, true) {
		r.sub.settle(r, v, time.Since(r.started))
	}
}

// Fail ends a delivery that Receive handed over, as a failed attempt, and does not wait.
func (r *Run) Fail(err error) { r.end(Verdict{Verb: lua.Fail, Err: err}) }

// Settle ends a delivery that Receive handed over and waits for the server's answer, while ctx lasts: the settlement then goes
// on by itself. Errors: ErrLeaseExpired when it was settled before or is another's; ctx's.
func (r *Run) Settle(ctx context.Context, v Verdict) error {
	if !r.settled.CompareAndSwap(false, true) {
		return ErrLeaseExpired
	}
	answer := make(chan End, 1)
	r.answer = answer
	r.sub.settle(r, v, time.Since(r.started))
	select {
	case e := <-answer:
		if e.Outcome == LostIt {
			return ErrLeaseExpired
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
