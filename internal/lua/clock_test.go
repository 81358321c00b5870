package lua

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// TestServerTime: the scripts as they ship take the server's time for all that they write.
func TestServerTime(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), redistest.Deployed(t).Client(t)
	k := keys.NewStream(redistest.Prefix(t), "s").Group("g")
	now := func() int64 {
		at, err := c.Time(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		return at.UnixMilli()
	}
	// during runs a call and holds the time that it wrote against the server's before and after.
	during := func(what string, offset time.Duration, call func() (string, error)) {
		t.Helper()
		from := now()
		text, err := call()
		to := now()
		ms, bad := strconv.ParseInt(text, 10, 64)
		if ms -= offset.Milliseconds(); err != nil || bad != nil || ms < from || ms > to {
			t.Errorf("%s: wrote %q (%v), %v after a time between %d and %d", what, text, err, offset, from, to)
		}
	}
	part := func(s, sep string, i int) string {
		if p := strings.Split(s, sep); len(p) > i {
			return p[i]
		}
		return s
	}
	score := func(key, member string) string { return fmt.Sprintf("%.0f", c.ZScore(ctx, key, member).Val()) }

	during("group", 0, func() (string, error) {
		_, _, err := EnsureGroup(ctx, c, k, "0", GroupStart, "")
		return part(c.HGet(ctx, k.Groups, "g").Val(), "|", 1), err
	})
	during("register", 0, func() (string, error) {
		_, err := Register(ctx, c, k, "c", time.Minute, "v")
		return part(c.HGet(ctx, k.Workers, "c").Val(), "|", 1), err
	})
	during("heartbeat", 0, func() (string, error) {
		_, err := Heartbeat(ctx, c, k, "c")
		return part(c.HGet(ctx, k.Workers, "c").Val(), "|", 1), err
	})
	during("tick's answer", 0, func() (string, error) {
		l, err := Tick(ctx, c, k, "c", time.Second, Totals{})
		return strconv.FormatInt(l.Now.UnixMilli(), 10), err
	})
	during("tick's sweep", 0, func() (string, error) {
		c.HDel(ctx, k.Meta, "swept")
		_, err := Tick(ctx, c, k, "c", time.Second, Totals{})
		return c.HGet(ctx, k.Meta, "swept").Val(), err
	})
	delayed := ""
	during("delayed id", 0, func() (string, error) {
		var err error
		delayed, _, err = Publish(ctx, c, k.Stream, Publication{Delay: time.Hour, Random: "ab", Fields: []string{"body", "a"}})
		return part(delayed, "-", 1), err
	})
	during("delayed due", time.Hour, func() (string, error) {
		id, _, err := Publish(ctx, c, k.Stream, Publication{Delay: time.Hour, Random: "cd", Fields: []string{"body", "a"}})
		return score(k.Stream.Due, id), err
	})
	c.XAdd(ctx, &redis.XAddArgs{Stream: k.Main, Values: []string{"body", "a"}})
	c.Do(ctx, "XREADGROUP", "GROUP", "g", "c", "STREAMS", k.Main, ">")
	during("snooze", 10*time.Second, func() (string, error) {
		id := c.XRange(ctx, k.Main, "-", "+").Val()[0].ID
		got, err := Settle(ctx, c, k, "c", 0, []Settlement{{Verb: Snooze, Source: Main, EntryID: id, Delay: 10 * time.Second}})
		if err != nil {
			return "", err
		}
		return score(k.Due, got[0].Detail), nil
	})
	dead := c.XAdd(ctx, &redis.XAddArgs{Stream: k.DLQ, Values: []string{"body", "a"}}).Val()
	during("redrive", 0, func() (string, error) {
		_, err := Redrive(ctx, c, k, []Letter{{EntryID: dead, ID: dead}}, false, nil)
		return score(k.Due, "x/"+dead), err
	})
	during("janitor", 0, func() (string, error) {
		c.ZRem(ctx, k.Due, "x/"+dead)
		_, _, err := Orphans(ctx, c, k.Due, k.Parked, "0")
		return score(k.Due, "x/"+dead), err
	})
	during("compact", 0, func() (string, error) {
		_, err := Compact(ctx, c, k.Stream, false, true)
		return c.HGet(ctx, k.Stream.Meta, "compacted").Val(), err
	})
	during("drop", 0, func() (string, error) {
		_, err := Drop(ctx, c, k, true)
		return part(c.HGet(ctx, k.Groups, "g").Val(), "|", 1), err
	})
}
