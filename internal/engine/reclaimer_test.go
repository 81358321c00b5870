package engine

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// steps counts the script calls that a client sends.
type steps int

func (n *steps) DialHook(next redis.DialHook) redis.DialHook { return next }
func (n *steps) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (n *steps) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			*n++
		}
		return next(ctx, cmd)
	}
}

// sweeper is a subscription of which nothing runs but what a test calls, with a dead owner that holds bad entries, which
// would be dead letters, and then five good ones.
func sweeper(t *testing.T, bad int) (s *Sub, c *redis.Client, n *steps, lines *strings.Builder) {
	t.Helper()
	c, n, lines = redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t), new(steps), &strings.Builder{}
	k := keys.NewStream(redistest.Prefix(t), "s").Group("g")
	s = New(t.Context(), Config{
		Redis: c, Keys: k, MaxLost: 3, SuspectFirst: time.Second, SuspectMost: time.Minute, Concurrency: 1,
		Log: slog.New(slog.NewTextHandler(lines, nil)),
	})
	t.Cleanup(s.end)
	_, err := c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range bad {
			p.Do(t.Context(), "XADD", k.Main, "*", "body", "a", "lost", "9")
		}
		for range 5 {
			p.Do(t.Context(), "XADD", k.Main, "*", "body", "a")
		}
		p.Do(t.Context(), "XGROUP", "CREATE", k.Main, "g", "0")
		p.Do(t.Context(), "XGROUP", "CREATE", k.Retry, "g", "0", "MKSTREAM")
		p.Do(t.Context(), "XREADGROUP", "GROUP", "g", "dead", "COUNT", bad+5, "STREAMS", k.Main, ">")
		p.Do(t.Context(), "HSET", k.Workers, "dead", "1000|1|v|dead|")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.AddHook(n)
	return s, c, n, lines
}

func TestReclaimWalksPastWhatCannotBeMoved(t *testing.T) {
	t.Parallel()
	s, c, n, lines := sweeper(t, 250)
	taken := 0
	s.cfg.Watch.Reclaimed = func(n int) { taken += n }
	c.Set(t.Context(), s.cfg.Keys.DLQ, "of another type", 0)
	s.reclaim("dead")
	// three steps, and the removal, which counts what is left
	if taken != 5 || c.XLen(t.Context(), s.cfg.Keys.Retry).Val() != 5 || *n != 4 {
		t.Errorf("took over %d in %d calls, want 5 in 4", taken, *n)
	}
	if got := lines.String(); strings.Count(got, "WRONGTYPE") != 1 || !strings.Contains(got, "reclaim failed") {
		t.Errorf("want one line about what could not be moved, have %s", got)
	}
	if !c.HExists(t.Context(), s.cfg.Keys.Workers, "dead").Val() {
		t.Error("the owner was taken out with 250 entries pending")
	}
	c.Del(t.Context(), s.cfg.Keys.DLQ)
	s.reclaim("dead")
	if dead := c.XLen(t.Context(), s.cfg.Keys.DLQ).Val(); dead != 250 || taken != 255 {
		t.Errorf("%d dead letters, %d taken over, want 250 and 255", dead, taken)
	}
	if c.HExists(t.Context(), s.cfg.Keys.Workers, "dead").Val() {
		t.Error("the emptied owner was not taken out")
	}
}

func TestReclaimEndsWhereNothingCanBeMoved(t *testing.T) {
	t.Parallel()
	s, c, n, lines := sweeper(t, 250)
	c.ConfigSet(t.Context(), "maxmemory", "1")
	s.reclaim("dead")
	if *n != 2 || c.XLen(t.Context(), s.cfg.Keys.Retry).Val() != 0 {
		t.Errorf("%d calls against a full memory, want one step and the removal", *n)
	}
	if got := lines.String(); !strings.Contains(got, "OOM") {
		t.Errorf("want a line about the full memory, have %s", got)
	}
	c.ConfigSet(t.Context(), "maxmemory", "0")
	s.reclaim("dead")
	if held := c.XPending(t.Context(), s.cfg.Keys.Main, "g").Val().Count; held != 0 {
		t.Errorf("%d still pending once there is room", held)
	}
}
