package lua

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// calls counts the commands that a server ran, those that scripts sent among them.
func calls(t *testing.T, c *redis.Client) (n int64) {
	t.Helper()
	info, err := c.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`cmdstat_[^:]+:calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		one, _ := strconv.ParseInt(m[1], 10, 64)
		n += one
	}
	return n
}

// TestBoundedWork: on a stream of 100,000 entries with 50,000 pending of a dead owner, 100,000 parked and 100,000 dead
// letters, no call sends more commands or moves more than it would on a small one.
func TestBoundedWork(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), redistest.Start(t).Client(t)
	k := keys.NewStream(redistest.Prefix(t), "s").Group("g")
	if _, _, err := EnsureGroup(ctx, c, k, "0", GroupStart, ""); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range 10_000 {
				p.Do(ctx, "XADD", k.Main, "*", "body", "a")
				p.Do(ctx, "XADD", k.DLQ, "*", "body", "a")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	c.Do(ctx, "XREADGROUP", "GROUP", "g", "dead", "COUNT", 50_000, "STREAMS", k.Main, ">")
	c.HSet(ctx, k.Workers, "dead", "1000|1|v|dead|", "live", fmt.Sprintf("60000|%d|v|live|", time.Now().UnixMilli()))
	c.HSet(ctx, k.Meta, "swept", 1)
	for n := range 100 {
		dues, values := []any{"ZADD", k.Due}, []any{"HSET", k.Parked}
		delayed, bodies := []any{"ZADD", k.Stream.Due}, []any{"HSET", k.Stream.Parked}
		for i := range 1000 {
			member := fmt.Sprintf("m/%d-%d", n+1, i)
			dues, values = append(dues, 1, member), append(values, member, "\x014:body,1:a,3:oid,1:x,")
			delayed, bodies = append(delayed, 1, "d-"+member), append(bodies, "d-"+member, "\x014:body,1:a,")
		}
		_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, cmd := range [][]any{dues, values, delayed, bodies} {
				p.Do(ctx, cmd...)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	dead := c.XRangeN(ctx, k.DLQ, "-", "+", 1).Val()[0].ID

	for _, call := range []struct {
		name string
		most int64 // commands
		call func() (moved, most int64, err error)
	}{
		{"tick with a sweep", 30, func() (int64, int64, error) {
			l, err := Tick(ctx, c, k, "live", time.Second, Totals{})
			return int64(len(l.Dead)), 1, err
		}},
		{"reclaim", 1000, func() (int64, int64, error) {
			got, err := Reclaim(ctx, c, k, "dead", "", 3, time.Second, time.Minute)
			return got.Moved, stepEntries, err
		}},
		{"promote retries", 700, func() (int64, int64, error) {
			got, err := PromoteRetries(ctx, c, k)
			return got.Moved, stepEntries, err
		}},
		{"promote delayed", 700, func() (int64, int64, error) {
			got, err := PromoteDelayed(ctx, c, k)
			return got.Moved, stepEntries, err
		}},
		{"janitor", 300, func() (int64, int64, error) {
			_, found, err := Orphans(ctx, c, k.Due, k.Parked, "")
			return found, 0, err
		}},
		{"remove", 10, func() (int64, int64, error) {
			held, err := Remove(ctx, c, k, "dead")
			return held, 50_000, err
		}},
		{"compact", 300, func() (int64, int64, error) {
			got, err := Compact(ctx, c, k.Stream, false, true)
			return got.Removed, 2200, err
		}},
		{"settle", 20, func() (int64, int64, error) {
			got, err := Settle(ctx, c, k, "live", 0, []Settlement{{Verb: Fail, Source: Main, EntryID: "1-0"}})
			return int64(len(got)), 1, err
		}},
		{"redrive", 20, func() (int64, int64, error) {
			got, err := Redrive(ctx, c, k, []Letter{{EntryID: dead, ID: dead}}, false, nil)
			return int64(len(got)), 1, err
		}},
		{"lag", 140, func() (int64, int64, error) {
			got, err := Count(ctx, c, k.Main, "0-0", "+", 1000)
			return got.N, 1000, err
		}},
		{"find", 140, func() (int64, int64, error) {
			_, next, err := FindParked(ctx, c, k.Parked, "y", "", "*", 1000)
			if next == "" {
				t.Error("find looked at all parked values in one step")
			}
			return 0, 0, err
		}},
		{"seek", 20, func() (int64, int64, error) {
			_, _, err := Seek(ctx, c, k, "0")
			return 0, 0, err
		}},
		{"group", 20, func() (int64, int64, error) {
			_, _, err := EnsureGroup(ctx, c, k, "0", GroupAgain, "")
			return 0, 0, err
		}},
		{"drop", 20, func() (int64, int64, error) {
			_, err := Drop(ctx, c, k, false)
			return 0, 0, err
		}},
	} {
		before := calls(t, c)
		moved, most, err := call.call()
		if err != nil {
			t.Errorf("%s: %v", call.name, err)
		}
		if moved > most {
			t.Errorf("%s moved %d in one step, want at most %d", call.name, moved, most)
		}
		sent := calls(t, c) - before
		if sent > call.most || sent < 2 {
			t.Errorf("%s sent %d commands, want 2 to %d", call.name, sent, call.most)
		}
		t.Logf("%s: %d commands, %d entries", call.name, sent, moved)
	}
	if slow := c.SlowLogGet(ctx, -1).Val(); len(slow) > 0 { // told, not judged: how long a call takes is the machine's affair
		for _, s := range slow {
			t.Logf("slow log: %v %s", s.Duration, strings.Join(s.Args[:min(2, len(s.Args))], " "))
		}
	}
}
