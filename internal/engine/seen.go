package engine

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// seenCheck asks whether this group finished a message already.
type seenCheck struct {
	key    string
	answer chan bool // closed without a value when the server did not answer
}

// finished looks for the marker just before the handler starts; ok is false when it may not start.
func (s *Sub) finished(r *Run) (done, ok bool) {
	for try := 0; ; try++ {
		c := &seenCheck{key: s.cfg.Keys.Seen(r.Msg.ID), answer: make(chan bool, 1)}
		s.seen.Add(c)
		if done, answered := <-c.answer; answered {
			if !done && !s.awaitLease(r) {
				break
			}
			return done, true
		}
		if r.inc.isVoid() || !s.pauseFor(try) {
			break
		}
	}
	s.drop(r)
	return false, false
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
	master, err := conn.Master(ctx, s.cfg.Redis, s.cfg.Keys.Main)
	if err != nil {
		s.note("seen", err)
		for _, c := range list {
			close(c.answer)
		}
		return
	}
	pipe := master.Pipeline()
	cmds := make([]lua.Once, len(list))
	for i, c := range list {
		cmds[i] = lua.NewOnce(ctx, "exists", c.key)
		_ = pipe.Process(ctx, cmds[i]) // queued only; each command carries its own error
	}
	if _, err := pipe.Exec(ctx); err != nil && err != redis.Nil { //nolint:errorlint // the library's own sentinel, unwrapped
		s.note("seen", err)
	}
	for i, c := range list {
		if n, err := cmds[i].Int(); err == nil {
			c.answer <- n == 1
		}
		close(c.answer)
	}
}
