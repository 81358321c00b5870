package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// promoteRetries moves due retries of the group to its retry stream.
func (s *Sub) promoteRetries() { s.promote(lua.PromoteRetries, s.cfg.Keys.Due, s.cfg.Keys.Parked) }

// promoteDelayed moves due messages that were published with a delay to the stream.
func (s *Sub) promoteDelayed() {
	s.promote(lua.PromoteDelayed, s.cfg.Keys.Stream.Due, s.cfg.Keys.Stream.Parked)
}

func (s *Sub) promote(step func(context.Context, lua.Runner, keys.Group) (lua.Promoted, error), due, parked string) {
	for again := true; s.more(again); {
		res, err := step(s.life, s.cfg.Redis, s.cfg.Keys)
		if err != nil {
			s.note("promote", fmt.Errorf("keys %s, %s: %w", due, parked, err))
			return
		}
		again = res.More
		s.buried(res.Dead)
		s.complain("promote", res.Errors)
		if res.Missing > 0 {
			s.say("missing", "xstreamq: parked messages had lost their value", "messages", res.Missing)
		}
		if res.Mismatch && time.Since(s.tidied) > tidyEvery {
			s.tidied = time.Now()
			s.tidy(due, parked)
		}
	}
}
