package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// tickLoop keeps the lease: it makes the group and the consumer's record, then ticks once an interval.
func (s *Sub) tickLoop() {
	interval := min(s.cfg.Interval, s.cfg.Visibility/4)
	for try := 0; s.life.Err() == nil; {
		s.ticks.step()
		s.mu.Lock()
		inc, stopping := s.current, s.stopping
		s.mu.Unlock()
		wait := interval
		var err error
		switch {
		case inc != nil:
			wait, err = s.tick(inc, interval)
		case !stopping:
			if err = s.begin(); err == nil {
				wait = 0
			}
		}
		s.beatRetired()
		switch {
		case err == nil:
			try = 0
			s.well("tick")
		case fatal(err) && s.fresh():
			s.fail(err)
			return
		case errors.Is(err, ErrGroupRemoved):
			s.fail(err)
			return
		default:
			s.note("tick", err)
			if wait = commit.Backoff(try); inc != nil {
				wait = min(wait, interval)
			}
			try++
		}
		s.handBackOld()
		s.broadcast() // workers and the reader look at the lease again
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.wake:
		case <-s.life.Done():
		}
		t.Stop()
	}
}

// fatal errors are mended by no waiting; before the first read they end the subscription.
func fatal(err error) bool {
	return errors.Is(err, ErrUnsupported) || errors.Is(err, ErrFormat) || errors.Is(err, ErrAuth)
}

// fresh says that the subscription has never read.
func (s *Sub) fresh() bool {
	return !isClosed(s.ready)
}

// begin makes sure of the group and registers a new incarnation. A registration whose outcome is unknown is not repeated:
// the next try takes another name.
func (s *Sub) begin() error {
	ctx, cancel := context.WithTimeout(s.life, conn.Deadline)
	defer cancel()
	why := lua.GroupAgain
	if s.fresh() {
		why = lua.GroupStart
		if err := s.probe(ctx); err != nil {
			return err
		}
	}
	var what, position string
	err := s.bounded(ctx, conn.Deadline, func(ctx context.Context) (err error) {
		what, position, err = lua.EnsureGroup(ctx, s.cfg.Redis, s.cfg.Keys, s.cfg.From, why, s.cfg.Retain)
		return err
	})
	switch {
	case conn.Code(err) == "FORMAT":
		return fmt.Errorf("stream %s: %w: %w", s.cfg.Keys.Name, ErrFormat, err)
	case conn.Auth(err):
		return fmt.Errorf("%w: %w", ErrAuth, err)
	case err != nil:
		return err
	}
	if what == lua.GroupRemoved { // before it is listed: the registry has let go of it
		return fmt.Errorf("group %s of stream %s: %w", s.cfg.Keys.Group, s.cfg.Keys.Name, ErrGroupRemoved)
	}
	if err := s.list(); err != nil {
		return err
	}
	switch what {
	case lua.GroupRemade:
		s.cfg.Log.Warn("xstreamq: the group had vanished and was made again", "stream", s.cfg.Keys.Name, "group", s.cfg.Keys.Group, "after", position)
		if s.cfg.Watch.Remade != nil {
			s.cfg.Watch.Remade(position)
		}
	case lua.GroupAfterRemoval:
		s.cfg.Log.Warn("xstreamq: the group had been removed and was made anew", "stream", s.cfg.Keys.Name, "group", s.cfg.Keys.Group)
	}
	inc := newIncarnation(s.cfg.ConsumerPrefix)
	sent := time.Now()
	ok := false
	err = s.bounded(ctx, s.callTimeout(), func(ctx context.Context) (err error) {
		ok, err = lua.Register(ctx, s.cfg.Redis, s.cfg.Keys, inc.name, s.cfg.Visibility, s.cfg.Version)
		return err
	})
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("consumer name %s is taken; trying another", inc.name)
	}
	inc.renew(sent)
	s.mu.Lock()
	s.current = inc
	s.mu.Unlock()
	if s.fresh() {
		close(s.ready)
	}
	s.recovered()
	return nil
}

// list enters stream and group in the registry. A full memory refuses it, unlike the scripts of a start. The registry only
// says where to look, and a backlog is to be drained: so the work begins all the same, and ticks try again.
func (s *Sub) list() error {
	k := s.cfg.Keys
	err := s.bounded(s.life, conn.Deadline, func(ctx context.Context) error {
		return s.cfg.Redis.SAdd(ctx, k.Registry(), k.Member(""), k.Member(k.Group)).Err()
	})
	s.unlisted = err != nil
	switch {
	case conn.Code(err) == "OOM":
		return nil
	case conn.Auth(err):
		return fmt.Errorf("%w: key %s: %w", ErrAuth, k.Registry(), err)
	}
	return err
}

// probe asks whether the server knows the youngest command that all depends on, and warns of one that evicts. A server that
// hides COMMAND counts as able.
func (s *Sub) probe(ctx context.Context) error {
	cmd := lua.NewOnce(ctx, "command", "info", "xautoclaim")
	if err := s.cfg.Redis.Process(ctx, cmd); err != nil {
		if conn.Auth(err) {
			return fmt.Errorf("%w: %w", ErrAuth, err)
		}
		if !conn.Refused(err) {
			return err
		}
		return nil
	}
	if list, ok := cmd.Val().([]any); ok && len(list) == 1 && list[0] == nil {
		return fmt.Errorf("%w: it lacks XAUTOCLAIM; Redis 6.2 or later, or Valkey, is needed", ErrUnsupported)
	}
	if node, err := conn.Master(ctx, s.cfg.Redis, s.cfg.Keys.Main); err == nil {
		if policy := conn.Evicts(ctx, node); policy != "" {
			s.say("eviction", "xstreamq: a full memory may take messages, groups and markers; set maxmemory-policy noeviction", "policy", policy)
		}
	}
	return nil
}

// tick renews the lease and acts on what it sees; it returns how long to wait for the next.
func (s *Sub) tick(inc *incarnation, interval time.Duration) (time.Duration, error) {
	sent := time.Now()
	var look lua.Look
	err := s.sendTotals(func(add lua.Totals) error {
		return s.bounded(s.life, s.callTimeout(), func(ctx context.Context) (err error) {
			look, err = lua.Tick(ctx, s.cfg.Redis, s.cfg.Keys, inc.name, interval, add)
			return err
		})
	})
	if err != nil {
		s.beat(inc) // one key alone: it goes on while the slot's others migrate
		return interval, err
	}
	if look.Beat == "gone" {
		s.lose(inc, "another consumer counts it as dead")
		s.wakeReader() // what it reads under the lost name only has to be handed back
		return 0, nil
	}
	inc.renew(sent)
	s.clock.Store(look.Now.UnixNano() - int64(time.Since(epoch)))
	if s.unlisted {
		_ = s.list() // the next tick tries again
	}
	switch look.State {
	case lua.StateOK:
	case lua.StateRemoved:
		return 0, fmt.Errorf("group %s of stream %s: %w", s.cfg.Keys.Group, s.cfg.Keys.Name, ErrGroupRemoved)
	default:
		s.wakeReader() // 6.2 leaves it blocked on a stream that is gone
		s.lose(inc, look.State)
		return 0, nil
	}
	s.setPaused(look.Paused)
	s.mu.Lock()
	old := s.takeOldLocked()
	s.mu.Unlock()
	s.handBack(old)
	if look.Due+look.Delayed > 0 || len(look.Dead) > 0 || s.maintenanceDue(look) {
		select {
		case s.jobs <- look:
		default: // the sweeper is at work; the next tick says it again
		}
	}
	if look.LeastVisibility > 0 {
		interval = min(interval, look.LeastVisibility/4)
	}
	return max(interval, 50*time.Millisecond), nil
}

// beat sends the heartbeat alone.
func (s *Sub) beat(inc *incarnation) {
	sent, ok := time.Now(), false
	err := s.bounded(s.life, s.callTimeout(), func(ctx context.Context) (err error) {
		ok, err = lua.Heartbeat(ctx, s.cfg.Redis, s.cfg.Keys, inc.name)
		return err
	})
	switch {
	case err != nil:
	case ok:
		inc.renew(sent)
	default:
		s.lose(inc, "another consumer counts it as dead")
	}
}

// beatRetired keeps the leases of fenced names whose handlers still run, and lets go of those that have ended.
func (s *Sub) beatRetired() {
	s.mu.Lock()
	var live, over []*incarnation
	for _, inc := range s.retired {
		if len(inc.held) > 0 {
			live = append(live, inc)
		} else {
			over = append(over, inc)
		}
	}
	s.retired = live
	list := append([]*incarnation(nil), live...)
	s.mu.Unlock()
	for _, inc := range list {
		s.beat(inc)
	}
	s.leaveNames(over)
}

// handBackOld releases what still stands under names whose lease was lost, so that nobody waits for it to be reclaimed.
func (s *Sub) handBackOld() {
	s.mu.Lock()
	list := s.leftover
	s.leftover = nil
	s.mu.Unlock()
	var later []*incarnation
	var over []*incarnation
	for _, inc := range list {
		err := s.handBackName(inc.name)
		switch {
		case err == nil:
			over = append(over, inc)
		case conn.Code(err) != "NOGROUP":
			later = append(later, inc)
		}
	}
	s.leaveNames(over)
	if len(later) > 0 {
		s.mu.Lock()
		s.leftover = append(s.leftover, later...)
		s.mu.Unlock()
	}
}

// handBackName releases all that stands under a name.
func (s *Sub) handBackName(name string) error {
	ctx, cancel := context.WithTimeout(s.life, conn.Deadline)
	defer cancel()
	master, err := conn.Master(ctx, s.cfg.Redis, s.cfg.Keys.Main)
	if err != nil {
		return err
	}
	all, err := s.pendingOf(master, name, nil)
	if err != nil {
		return err
	}
	return s.releaseAll(master, name, all)
}

// leaveNames takes names out that hold nothing any more; one that does stays for the sweeps.
func (s *Sub) leaveNames(list []*incarnation) {
	for _, inc := range list {
		_ = s.bounded(s.life, s.callTimeout(), func(ctx context.Context) error {
			_, err := lua.Remove(ctx, s.cfg.Redis, s.cfg.Keys, inc.name)
			return err
		}) // else the others' sweeps remove it
	}
}

// setPaused follows the pause flag: paused, nothing is read and the buffer goes back; running handlers and sweeps go on.
func (s *Sub) setPaused(flag string) {
	paused := flag != ""
	s.mu.Lock()
	changed := s.paused != paused
	s.paused = paused
	var back []*Run
	if paused {
		back = s.buffer.takeAll()
	}
	s.mu.Unlock()
	s.handBack(back)
	if !changed {
		return
	}
	if paused {
		s.wakeReader()
	}
	if s.cfg.Watch.Paused != nil {
		s.cfg.Watch.Paused(paused, flag)
	}
}

// wakeReader ends a read that may be blocked.
func (s *Sub) wakeReader() {
	s.mu.Lock()
	r := s.reading
	s.mu.Unlock()
	if r != nil {
		_ = s.bounded(s.life, s.callTimeout(), func(ctx context.Context) error { // the read ends by itself within 2 s
			r.Unblock(ctx)
			return nil
		})
	}
}
