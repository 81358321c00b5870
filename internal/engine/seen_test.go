package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

func deduped(c *Config) { c.DedupeTTL = time.Minute }

func unused(context.Context, *Run) Verdict { return Verdict{} }

// Of many that are asked for at once, each is told its own answer.
func TestMarkersOfMany(t *testing.T) {
	t.Parallel()
	s, inc, _ := still(t, unused, deduped)
	if err := s.cfg.Redis.XGroupCreateMkStream(t.Context(), s.cfg.Keys.Main, "g", "0").Err(); err != nil {
		t.Fatal(err)
	}
	var runs []*Run
	marked := 0
	for i := range 1000 {
		r := s.delivery(inc, lua.Main, fmt.Sprintf("%d-1", i+1), 0)
		if runs = append(runs, r); i%97 == 0 || i > 990 {
			marked++
			if err := s.cfg.Redis.Set(t.Context(), s.cfg.Keys.Seen(r.Msg.ID), "1", time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	inc.renew(time.Now())
	kept := s.unfinished(slices.Clone(runs))
	for _, r := range kept {
		if n := s.cfg.Redis.Exists(t.Context(), r.marker).Val(); n != 0 {
			t.Errorf("%s would start though it has a marker", r.Msg.ID)
		}
	}
	if len(kept) != len(runs)-marked {
		t.Errorf("%d of %d would start, want %d", len(kept), len(runs), len(runs)-marked)
	}
}

// A full memory takes acks, but no markers: the script sets them all the same, and the delivery ends as what it was.
func TestMarkersInFullMemory(t *testing.T) {
	t.Parallel()
	c := redistest.Start(t, "--maxmemory-policy", "noeviction").Client(t)
	s, inc, ends := still(t, unused, deduped, func(c2 *Config) { c2.Redis = c })
	id, err := c.XAdd(t.Context(), &redis.XAddArgs{Stream: s.cfg.Keys.Main, Values: []string{"body", "x"}}).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]any{
		{"xgroup", "create", s.cfg.Keys.Main, "g", "0"},
		{"xreadgroup", "group", "g", inc.name, "streams", s.cfg.Keys.Main, ">"},
		{"config", "set", "maxmemory", "1"},
	} {
		if err := c.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(args, err)
		}
	}
	r := s.delivery(inc, lua.Main, id, 0)
	r.marker = s.cfg.Keys.Seen(id)
	s.heard.Store(int64(time.Since(epoch)))
	inc.renew(time.Now())
	s.settle(r, Verdict{Verb: lua.Ack}, 0)
	if e := <-ends; e.Outcome != Acked || e.Err != nil {
		t.Errorf("end %+v", e)
	}
	if n := c.Exists(t.Context(), r.marker).Val(); n != 1 {
		t.Error("it left no marker")
	}
	if n := c.XPending(t.Context(), s.cfg.Keys.Main, "g").Val().Count; n != 0 {
		t.Errorf("%d pending", n)
	}
}
