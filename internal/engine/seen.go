package engine

import (
	"context"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// seenCheck asks whether this group finished a message already.
type seenCheck struct {
	run    *Run
	answer chan bool // closed without a value when the server did not answer
}

// unfinished looks for the markers just before the handler starts; it settles what is finished, lets go of what cannot be
// told, and returns the rest in place.
func (s *Sub) unfinished(runs []*Run) []*Run {
	asked := make([]*seenCheck, len(runs))
	for i, r := range runs {
		asked[i] = s.askSeen(r)
	}
	kept := runs[:0]
	for i, r := range runs {
		switch done, ok := s.finished(r, asked[i]); {
		case !ok:
			s.drop(r)
		case done:
			s.settle(r, Verdict{Verb: lua.Ack, Reason: Skipped}, 0)
		default:
			kept = append(kept, r)
		}
	}
	return kept
}

func (s *Sub) askSeen(r *Run) *seenCheck {
	if r.marker == "" {
		r.marker = s.cfg.Keys.Seen(r.Msg.ID)
	}
	c := &seenCheck{run: r, answer: make(chan bool, 1)}
	s.seen.Add(c)
	return c
}

// finished awaits the answer, and asks again where there is none; ok is false when the delivery may not start.
func (s *Sub) finished(r *Run, c *seenCheck) (done, ok bool) {
	for try := 0; ; try++ {
		if done, answered := <-c.answer; answered {
			return done, done || s.awaitLease(r)
		}
		if r.inc.isVoid() || !s.pauseFor(try) {
			return false, false
		}
		c = s.askSeen(r)
	}
}

// awaitLease waits, after a call that may have taken long, until at least half a lease is left again.
func (s *Sub) awaitLease(r *Run) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r.inc.left(s.cfg.Visibility) < s.cfg.Visibility/2 {
		if r.inc.isVoid() || s.stopping {
			return false
		}
		s.cond.Wait()
	}
	return true
}

func (s *Sub) checkSeen(list []*seenCheck) {
	ctx, cancel := context.WithTimeout(s.life, s.callTimeout())
	defer cancel()
	seen := make([]bool, len(list))
	master, err := conn.Master(ctx, s.cfg.Redis, s.cfg.Keys.Main)
	if err == nil {
		err = marked(ctx, master, list, seen)
	}
	if err != nil {
		s.note("seen", err)
	}
	for i, c := range list {
		if err == nil {
			c.answer <- seen[i]
		}
		close(c.answer)
	}
}

// marked finds which have a marker. As a rule none has, which is one question; else each half is asked for.
func marked(ctx context.Context, on lua.Runner, list []*seenCheck, seen []bool) error {
	args := append(make([]any, 0, 1+len(list)), "exists")
	for _, c := range list {
		args = append(args, &c.run.marker)
	}
	cmd := lua.NewOnce(ctx, args...)
	_ = on.Process(ctx, cmd) // its error is the command's
	n, err := cmd.Int()
	half := len(list) / 2
	switch {
	case err != nil || n == 0:
		return err
	case n == len(list):
		for i := range seen {
			seen[i] = true
		}
		return nil
	}
	if err := marked(ctx, on, list[:half], seen[:half]); err != nil {
		return err
	}
	return marked(ctx, on, list[half:], seen[half:])
}
