package engine

import (
	"github.com/xstreamq/xstreamq/internal/lua"
)

// reclaim empties a consumer that was marked dead, then takes it out.
func (s *Sub) reclaim(owner string) {
	total := 0
	for again := true; s.more(again); {
		res, err := lua.Reclaim(s.life, s.cfg.Redis, s.cfg.Keys, owner, s.cfg.MaxLost, s.cfg.SuspectFirst, s.cfg.SuspectMost)
		if err != nil {
			s.note("reclaim", err)
			return
		}
		again = res.More
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

func (s *Sub) buried(list []lua.Burial) {
	if s.cfg.Watch.Buried == nil {
		return
	}
	for _, d := range list {
		s.cfg.Watch.Buried(s.base, d.DeadID)
	}
}

func (s *Sub) complain(what string, errs []string) {
	for _, e := range errs {
		s.note(what, serverError(e))
	}
}
