package engine

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// A compaction that takes long holds up no retry: here it ends in a hook that does not return until the retry is back.
func TestNothingWaitsForCompaction(t *testing.T) {
	t.Parallel()
	removed, leave := make(chan int64, 1), make(chan struct{})
	s, _, _ := still(t, unused, func(c *Config) {
		c.Watch.Compacted = func(n int64) {
			removed <- n
			<-leave
		}
	})
	k, rdb := s.cfg.Keys, s.cfg.Redis
	_, err := rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Do(t.Context(), "xadd", k.Main, "1-0", "body", "done")
		p.Do(t.Context(), "xgroup", "create", k.Main, k.Group, "1-0")
		p.Do(t.Context(), "xgroup", "create", k.Retry, k.Group, "0", "mkstream")
		p.Do(t.Context(), "hset", k.Groups, k.Group, "1-0|1")
		p.Do(t.Context(), "hset", k.Parked, "m/2-0", wire.Pack([]string{"body", "again", "oid", "2-0"}))
		p.Do(t.Context(), "zadd", k.Due, 1, "m/2-0")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.goLoop(&s.sweeps, s.sweepLoop)
	t.Cleanup(s.loops.Wait)
	t.Cleanup(s.end)
	t.Cleanup(func() { close(leave) })
	s.jobs <- lua.Look{Now: time.Now()}
	if n := <-removed; n != 1 {
		t.Errorf("%d removed, want 1", n)
	}
	s.jobs <- lua.Look{Now: time.Now(), Due: 1}
	redistest.Eventually(t, 10*time.Second, func() bool { return rdb.XLen(t.Context(), k.Retry).Val() == 1 }, "the retry is back")
}
