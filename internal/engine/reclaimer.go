package engine

import (
	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// reclaim empties a consumer that was marked dead, in one walk over what it holds, then takes it out. What could not be
// moved is tried again by the next sweep.
func (s *Sub) reclaim(owner string) {
	total, from := 0, ""
	for again := true; s.more(again); {
		res, err := lua.Reclaim(s.life, s.cfg.Redis, s.cfg.Keys, owner, from, s.cfg.MaxLost, s.cfg.SuspectFirst, s.cfg.SuspectMost)
		if err != nil {
			s.note("reclaim", err)
			return
		}
		from, again = res.Next, res.Next != "" && !refused(res)
		total += int(res.Moved)
		s.buried(res.Dead)
		s.complain("reclaim", res.Errors)
		if len(res.Deleted) > 0 {
			s.say("deleted", "xstreamq: entries were deleted by others while they were in flight", "entries", len(res.Deleted), "consumer", owner)
		}
	}
	if total > 0 {
		s.cfg.Log.Warn("xstreamq: took over what a dead consumer held", "stream", s.cfg.Keys.Name, "group", s.cfg.Keys.Group,
			"consumer", owner, "messages", total)
		if s.cfg.Watch.Reclaimed != nil {
			s.cfg.Watch.Reclaimed(total)
		}
	}
	if _, err := lua.Remove(s.life, s.cfg.Redis, s.cfg.Keys, owner); err != nil {
		s.note("remove", err)
	}
}

// refused says that the server refused all moves of a step, as a full memory does: those behind would fare no better.
func refused(r lua.Reclaimed) bool {
	if r.Moved > 0 || len(r.Deleted) > 0 || len(r.Errors) == 0 {
		return false
	}
	err := conn.Said(r.Errors[0])
	return conn.NotRun(err) || conn.Code(err) == "OOM"
}

func (s *Sub) buried(list []lua.Burial) {
	s.totals.add(lua.Totals{Dead: int64(len(list))})
	if s.cfg.Watch.Buried == nil {
		return
	}
	for _, d := range list {
		s.cfg.Watch.Buried(s.base, d.DeadID)
	}
}

func (s *Sub) complain(what string, errs []string) {
	for _, e := range errs {
		s.note(what, conn.Said(e))
	}
}
