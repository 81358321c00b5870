package engine

import (
	"time"

	"github.com/xstreamq/xstreamq/internal/lua"
)

// compactEvery is how often some worker of a stream's groups compacts it.
const compactEvery = 3 * time.Second

// sweepLoop does what ticks found to do. Moving scripts run here, so that no heartbeat waits for them.
func (s *Sub) sweepLoop() {
	for {
		select {
		case <-s.life.Done():
			return
		case look := <-s.jobs:
			s.sweeps.step()
			for _, owner := range look.Dead {
				s.reclaim(owner)
			}
			if look.Due > 0 {
				s.promoteRetries()
			}
			if look.Delayed > 0 {
				s.promoteDelayed()
			}
			if s.maintenanceDue(look) && s.compacting.CompareAndSwap(false, true) {
				s.loops.Go(s.compact) // by itself: it takes its time, and what is due does not wait for it
			}
			s.sweeps.rest()
		}
	}
}

// maintenanceDue says that nobody compacted lately. A time that is still to come is from before the clock was set back.
func (s *Sub) maintenanceDue(look lua.Look) bool {
	return look.Now.Sub(look.Compacted) >= compactEvery || look.Compacted.After(look.Now)
}

// more says that a bounded step shall be followed by another: not when everything ends.
func (s *Sub) more(again bool) bool {
	s.sweeps.step()
	return again && s.life.Err() == nil
}
