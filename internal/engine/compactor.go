package engine

import (
	"time"

	"github.com/xstreamq/xstreamq/internal/lua"
)

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
		if again = res.More; again { // most of the server's time is for others, nearly all while there is nothing to gain
			rest := 4 * time.Since(began)
			if res.Removed == 0 {
				rest *= 25
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
