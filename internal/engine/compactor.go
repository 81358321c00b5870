package engine

import (
	"time"

	"github.com/xstreamq/xstreamq/internal/lua"
)

// worthwhile is how many entries a step removes, of the 100 that one above a pinned floor looks at, so that the next follows at
// once: else a busy stream would grow faster than it is trimmed.
const worthwhile = 50

// compact trims what every group of the stream is done with. Any worker's compaction serves all.
func (s *Sub) compact() {
	defer s.compacting.Store(false)
	var removed int64
	for again := true; again && s.life.Err() == nil; {
		began := time.Now()
		res, err := lua.Compact(s.life, s.cfg.Redis, s.cfg.Keys.Stream, false, false)
		if err != nil {
			s.note("compact", err)
			return
		}
		again = res.More
		if took := time.Since(began); again && res.Removed < worthwhile { // the server's time is for others
			rest := 4 * took
			if res.Removed == 0 {
				rest = 100 * took
			}
			s.sleep(min(rest, time.Second))
		}
		removed += res.Removed
		if res.State == lua.CompactMissing {
			s.say("compact", "xstreamq: nothing is compacted while a recorded group is missing", "missing", res.HeldBy)
		}
	}
	if removed > 0 && s.cfg.Watch.Compacted != nil {
		s.cfg.Watch.Compacted(removed)
	}
}
