package engine

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// adoptEvery is how often the reader compares what is pending under its name with what it holds.
const adoptEvery = time.Minute

// answerTime is how long after its block a read may take: then health is red, before the read is given up.
const answerTime = 500 * time.Millisecond

// readLoop reads as long as there is room: both streams with one blocking read on a connection of its own.
func (s *Sub) readLoop() {
	defer func() {
		s.mu.Lock()
		if s.reading != nil {
			_ = s.reading.Close() // nothing is under way on it any more
			s.reading = nil
		}
		close(s.readOut)
		s.wakeLocked()
		s.mu.Unlock()
	}()
	var adopted time.Time
	unsure := false // a read's outcome is unknown: something may stand under our name that we do not hold
	for try := 0; ; {
		inc, room := s.waitForRoom()
		if inc == nil {
			return
		}
		r, err := s.connection()
		if err == nil && (unsure || time.Since(adopted) > adoptEvery) {
			if err = s.adopt(r, inc); err == nil {
				unsure, adopted = false, time.Now()
			}
		}
		if err == nil {
			err = s.readOnce(r, inc, room, try > 0)
			unsure = unsure || err != nil && !conn.Refused(err) && !conn.NotRun(err)
			s.leaveRead(inc)
		}
		switch {
		case err == nil:
			try = 0
			s.heard.Store(int64(time.Since(epoch)))
			s.recovered()
		case conn.Code(err) == "NOGROUP":
			s.lose(inc, err.Error())
		case conn.Code(err) == "UNBLOCKED": // of a key that is gone, too: the next read says whether it only moved to another node
			if conn.Demoted(err) {
				s.fence()
			}
		default:
			s.heard.Store(0)
			s.note("read", err)
			s.reconnectElsewhere(err)
			s.sleep(commit.Backoff(try))
			try++
		}
	}
}

// leaveRead takes a name out that was left while a read under it went on: to the server each read makes its consumer anew.
func (s *Sub) leaveRead(inc *incarnation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != inc && !slices.Contains(s.retired, inc) {
		s.leftover = append(s.leftover, inc)
		s.nudge()
	}
}

// sleep waits for d, or until reading ends.
func (s *Sub) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.draining:
	}
}

// waitForRoom waits until something may be read; nil when reading ends.
func (s *Sub) waitForRoom() (*incarnation, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if s.stopping {
			return nil, 0
		}
		s.reads.step() // every tick wakes it
		room := s.roomLocked()
		enough := s.buffer.len() < max(1, s.cfg.Batch) || room >= (s.buffer.len()+room)/2
		if s.current != nil && !s.paused && s.alone == nil && !s.holding && room > 0 && enough &&
			s.current.left(s.cfg.Visibility) >= s.cfg.Visibility/2 {
			return s.current, room
		}
		s.well("read") // nothing is to be read
		s.room.Wait()
	}
}

// connection is the reader's own, made when there is none.
func (s *Sub) connection() (*conn.Reader, error) {
	s.mu.Lock()
	r := s.reading
	s.mu.Unlock()
	if r != nil {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(s.life, conn.Deadline)
	defer cancel()
	r, err := conn.NewReader(ctx, s.cfg.Redis, s.cfg.Keys.Main, s.fence)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.reading = r
	s.mu.Unlock()
	return r, nil
}

// reconnectElsewhere forgets the connection where its slot moved to another node of a cluster, or its server was demoted.
func (s *Sub) reconnectElsewhere(err error) {
	switch conn.Code(err) {
	case "MOVED", "ASK", "CLUSTERDOWN", "READONLY":
	default:
		if _, cluster := s.cfg.Redis.(*redis.ClusterClient); !cluster {
			return
		}
	}
	s.mu.Lock()
	r := s.reading
	s.reading = nil
	s.mu.Unlock()
	if r != nil {
		_ = r.Close() // it failed already
		s.fence()
	}
}

// readOnce is one blocking read. COUNT holds for each stream. After a failure it is short: it tells whether reading works.
func (s *Sub) readOnce(r *conn.Reader, inc *incarnation, room int, failed bool) error {
	k := s.cfg.Keys
	// A process that is stopped leaves its read behind: it must be over before the lease is, or it is given what was taken
	// from it.
	block := min(r.BlockFor(), s.cfg.Visibility/2)
	if failed {
		block = min(block, 100*time.Millisecond)
	}
	count := max(1, room/2)
	if s.cfg.Concurrency == 0 {
		count = room // as many as a Receive asked for; what comes beyond waits for the next one
	}
	var runs []*Run
	back := false // to what was read before: somebody moved the group
	take := func(stream, id string, fields []string) {
		source, last := sourceMain, &inc.last[0]
		if stream == k.Retry {
			source, last = sourceRetry, &inc.last[1]
		}
		if wire.CompareIDs(id, *last) > 0 {
			*last = id
		} else {
			back = true
		}
		run := &Run{Source: source, sub: s, inc: inc}
		run.Msg = wire.Parse(id, append(run.few[:0], fields...))
		s.speed.size.add(int64(len(run.Msg.Body)))
		runs = append(runs, run)
	}
	read := func(streams ...any) error {
		s.awaited.Store(int64(time.Since(epoch) + block + answerTime))
		defer s.awaited.Store(0)
		return r.Entries(s.life, take, append([]any{
			"xreadgroup", "group", k.Group, inc.name, "count", count, "block", block.Milliseconds(), "streams",
		}, streams...)...)
	}
	err := read(k.Main, k.Retry, ">", ">")
	if conn.Code(err) == "WRONGTYPE" { // a retry key of another type shall not stop new messages
		s.say("wrong type", "xstreamq: reading the stream alone", "key", k.Retry, "err", err)
		err = read(k.Main, ">")
	}
	if back {
		runs = s.unheld(inc, runs)
	}
	if len(runs) > 0 {
		s.push(inc, runs)
	}
	return err
}

// unheld leaves out what is held already: a group that somebody moves back is given again what is in flight.
func (s *Sub) unheld(inc *incarnation, runs []*Run) []*Run {
	s.mu.Lock()
	held := inc.holds()
	s.mu.Unlock()
	return slices.DeleteFunc(runs, func(r *Run) bool { return held[heldKey{r.Source, r.Msg.EntryID}] })
}

// adopt lists what is pending under the reader's name and hands back what it does not hold: entries whose read was answered
// to nobody. It asks on the reader's own connection: when that had to be made anew, those in the pool may be dead too.
func (s *Sub) adopt(r *conn.Reader, inc *incarnation) error {
	s.mu.Lock()
	held := inc.holds() // what is settled meanwhile is not pending any more, and nothing is read
	s.mu.Unlock()
	lost, err := s.pendingOf(r, inc.name, held)
	if err != nil {
		return err
	}
	return s.releaseAll(r, inc.name, lost)
}

// pendingOf lists what is pending under a name and not held.
func (s *Sub) pendingOf(on lua.Runner, name string, held map[heldKey]bool) ([]lua.Settlement, error) {
	ctx, cancel := context.WithTimeout(s.life, conn.Deadline)
	defer cancel()
	var out []lua.Settlement
	for _, src := range []struct{ source, key string }{{sourceMain, s.cfg.Keys.Main}, {sourceRetry, s.cfg.Keys.Retry}} {
		for from := "-"; ; {
			cmd := redis.NewXPendingExtCmd(ctx, "xpending", src.key, s.cfg.Keys.Group, from, "+", 1000, name)
			switch err := on.Process(ctx, cmd); {
			case conn.Code(err) == "NOGROUP", conn.Code(err) == "WRONGTYPE" && src.source == sourceRetry:
				// nothing can be pending there
			case err != nil:
				return nil, err
			}
			list := cmd.Val()
			for _, p := range list {
				if !held[heldKey{src.source, p.ID}] {
					out = append(out, lua.Settlement{Verb: lua.Release, Source: src.source, EntryID: p.ID})
				}
			}
			if len(list) < 1000 {
				break
			}
			from = wire.NextID(list[len(list)-1].ID)
		}
	}
	return out, nil
}

// releaseAll hands entries back under a name. What was deleted meanwhile is left to the sweeps.
func (s *Sub) releaseAll(on lua.Runner, name string, list []lua.Settlement) error {
	for len(list) > 0 {
		n := min(len(list), settleEntries)
		ctx, cancel := context.WithTimeout(s.life, conn.Deadline)
		_, err := lua.Settle(ctx, on, s.cfg.Keys, name, 0, list[:n])
		cancel()
		if err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

// interrupt wakes the blocked read until the reader has reported: an unblock may come before its read.
func (s *Sub) interrupt() {
	t := time.NewTicker(50 * time.Millisecond)
	defer t.Stop()
	for !isClosed(s.readOut) {
		s.wakeReader()
		select {
		case <-t.C:
		case <-s.readOut:
		case <-s.life.Done():
			return
		}
	}
}
