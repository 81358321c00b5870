package engine

import (
	"fmt"
	"sync/atomic"
	"time"
)

// silentAfter is how long a loop may take for one step, beside three ticks. Its calls end sooner by their own limits.
const silentAfter = time.Minute

// loop is what health sees of one of the subscription's loops.
type loop struct {
	beat atomic.Int64 // ns after epoch of its last step; 0 = it waits for work, which may take any time
	over atomic.Bool
}

func (l *loop) step() { l.beat.Store(int64(time.Since(epoch))) }
func (l *loop) rest() { l.beat.Store(0) }

// goLoop starts a loop and learns of its end, also of one that a hook brought about (runtime.Goexit).
func (s *Sub) goLoop(l *loop, f func()) {
	s.loops.Go(func() {
		defer l.over.Store(true)
		f()
	})
}

// Status is how a subscription fares at one moment.
type Status struct {
	Err     error    // what ended it by itself
	Dead    []string // loops that ended though nobody stopped them
	Silent  []string // loops without a step for over a minute
	Ready   bool     // the group exists and is being read
	Lease   bool     // handlers may start
	Paused  bool
	Trouble error // what the last tick, read or settlement failed with
	Deaf    int   // handlers that do not heed the end of their context
	Slots   int
}

// Status looks at the subscription as of now.
func (s *Sub) Status(now time.Time) Status {
	st := Status{Ready: isClosed(s.ready), Slots: len(s.slots)}
	s.mu.Lock()
	st.Err, st.Paused = s.err, s.paused
	st.Lease = s.current != nil && s.current.left(s.cfg.Visibility) >= s.cfg.Visibility/2
	s.mu.Unlock()
	if !isClosed(s.draining) && st.Err == nil {
		st.Dead, st.Silent = s.lookAtLoops(now)
	}
	s.trouble.mu.Lock()
	for _, what := range []string{"tick", "read", "settle"} {
		if err := s.trouble.bad[what]; err != nil && st.Trouble == nil {
			st.Trouble = fmt.Errorf("%s: %w", what, err)
		}
	}
	s.trouble.mu.Unlock()
	if due := time.Duration(s.awaited.Load()); due != 0 && st.Trouble == nil && now.Sub(epoch) > due {
		st.Trouble = fmt.Errorf("read: its answer is overdue by %s", (now.Sub(epoch) - due).Round(time.Millisecond))
	}
	for _, sl := range s.slots {
		sl.mu.Lock()
		if sl.stuck {
			st.Deaf++
		}
		sl.mu.Unlock()
	}
	return st
}

func (s *Sub) lookAtLoops(now time.Time) (dead, silent []string) {
	most := silentAfter + 3*s.cfg.Interval
	for _, l := range []struct {
		name string
		*loop
	}{{"tick", &s.ticks}, {"read", &s.reads}, {"sweep", &s.sweeps}, {"watchdog", &s.watches}} {
		beat := l.beat.Load()
		switch quiet := now.Sub(epoch) - time.Duration(beat); {
		case l.over.Load():
			dead = append(dead, l.name)
		case beat != 0 && quiet > most:
			silent = append(silent, fmt.Sprintf("%s (for %s)", l.name, quiet.Round(time.Second)))
		}
	}
	return dead, silent
}
