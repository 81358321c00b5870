package engine

import (
	"time"

	"github.com/xstreamq/xstreamq/internal/lua"
)

// tidyEvery is the least time between two walks: they look at all that is parked.
const tidyEvery = time.Minute

// tidy walks a parked hash, in bounded steps, for values that no due time names, and makes them due.
func (s *Sub) tidy(due, parked string) {
	var found int64
	for cursor := ""; s.more(cursor != "0"); {
		next, n, err := lua.Orphans(s.life, s.cfg.Redis, due, parked, cursor)
		if err != nil {
			s.note("janitor", err)
			return
		}
		cursor = next
		found += n
	}
	if found > 0 {
		s.say("orphans", "xstreamq: parked messages without a due time were made due", "messages", found)
	}
}
