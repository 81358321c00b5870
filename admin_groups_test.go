package xstreamq_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/lua"
)

func TestGroupCreate(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	create := func(group string, from xstreamq.Position) bool {
		t.Helper()
		created, err := d.admin.Group("s", group).Create(t.Context(), from)
		d.must(err)
		return created
	}
	d.equal("a stream of its own", create("g", xstreamq.Head), true)
	d.equal("again", create("g", xstreamq.Tail), false)
	for i := range 4 {
		d.add(d.k.Main, fmt.Sprintf("%d-0", 1000*(i+1)), "body", "x")
	}
	d.add(d.k.Main, "5000-0", "body", "x", "oid", "d-7-aa")
	d.add(d.k.Main, "6000-0", "body", "x")
	for group, c := range map[string]struct {
		from xstreamq.Position
		lag  int
	}{
		"head": {xstreamq.Head, 6}, "tail": {xstreamq.Tail, 0}, "at": {xstreamq.AtTime(time.UnixMilli(3000)), 4},
		"after": {xstreamq.AfterID("3000-0"), 3}, "stable": {xstreamq.AfterID("d-7-aa"), 1},
	} {
		d.equal("created", create(group, c.from), true)
		depth, err := d.admin.Group("s", group).Depth(t.Context())
		d.must(err)
		if depth.Lag == nil || *depth.Lag != int64(c.lag) {
			t.Errorf("%s: %+v", group, depth)
		}
	}
	refs, err := d.admin.Registered(t.Context())
	d.must(err)
	d.equal("registered", len(refs), 7)
	_, err = d.admin.Group("s", "bad").Create(t.Context(), "nonsense")
	d.is(err, xstreamq.ErrInvalidOption, "nonsense")
	_, err = d.admin.Group("s", "bad").Create(t.Context(), xstreamq.AfterID("d-8-bb"))
	d.is(err, xstreamq.ErrNotFound, "d-8-bb")
	_, err = d.admin.Group("s", "bad").Depth(t.Context())
	d.is(err, xstreamq.ErrNotFound)
}

func TestGroupDelete(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.add(d.k.Main, "1-0", "body", "x")
	d.add(d.k.Main, "2-0", "body", "x")
	d.read(d.k.Main, "g", "c", 1)
	dead := d.bury("x")
	for _, force := range []bool{false, true} {
		d.unchanged("a refusal", func() {
			d.is(d.group().Delete(t.Context(), force), xstreamq.ErrNotEmpty, "1 dead", "1 pending", "some unread")
		})
	}
	d.must(d.group().Purge(t.Context(), dead))
	d.is(d.group().Delete(t.Context(), false), xstreamq.ErrNotEmpty, "0 dead")
	d.must(d.group().Delete(t.Context(), true))
	_, err := d.group().Depth(t.Context())
	d.is(err, xstreamq.ErrNotFound)
	refs, err := d.admin.Registered(t.Context())
	d.must(err)
	d.equal("registry", refs, []xstreamq.GroupRef{{Stream: "s"}})
	d.equal("the stream stays", d.rdb.XLen(t.Context(), d.k.Main).Val(), 2)
	d.do("sadd", d.k.Registry(), d.k.Member("g"))
	d.is(d.group().Delete(t.Context(), true), xstreamq.ErrNotFound, "s/g")
	d.equal("a stale name leaves the registry", d.rdb.SIsMember(t.Context(), d.k.Registry(), d.k.Member("g")).Val(), false)

	created, err := d.group().Create(t.Context(), xstreamq.Head)
	d.must(err)
	d.equal("made anew", created, true)
	d.read(d.k.Main, "g", "c", 9)
	d.do("xack", d.k.Main, "g", "1-0", "2-0")
	d.must(d.group().Delete(t.Context(), false))
}

func TestGroupSeek(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for i := range 5 {
		d.add(d.k.Main, fmt.Sprintf("%d-0", 1000*(i+1)), "body", "x")
	}
	d.read(d.k.Main, "g", "c", 9)
	d.is(d.group().Seek(t.Context(), xstreamq.Head), xstreamq.ErrNotEmpty, "pause")
	d.do("xack", d.k.Main, "g", "1000-0", "2000-0", "3000-0", "4000-0", "5000-0")
	for _, c := range []struct {
		to  xstreamq.Position
		lag int
	}{{xstreamq.Head, 5}, {xstreamq.Tail, 0}, {xstreamq.AtTime(time.UnixMilli(4000)), 2}, {xstreamq.AfterID("1000-0"), 4}} {
		d.must(d.group().Seek(t.Context(), c.to))
		d.equal(string(c.to), d.lagOf(), c.lag)
	}
	d.do("xtrim", d.k.Main, "minid", "3000-0")
	d.is(d.group().Seek(t.Context(), xstreamq.AfterID("1000-0")), xstreamq.ErrTrimmed, "3000-0")
	d.is(d.group().Seek(t.Context(), "tomorrow"), xstreamq.ErrInvalidOption, "tomorrow")
	d.equal("left where it was", d.lagOf(), 3)
}

func TestGroupPauseAndResume(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	flag := func() (f struct{ Reason, Since, Until string }) {
		t.Helper()
		d.must(json.Unmarshal([]byte(d.rdb.Get(t.Context(), d.k.Paused).Val()), &f))
		return f
	}
	d.must(d.group().Pause(t.Context(), `deploy "42"`, 0))
	f := flag()
	since, err := time.Parse(time.RFC3339, f.Since)
	d.must(err)
	if age := d.rdb.Time(t.Context()).Val().Sub(since); age < 0 || age > time.Minute {
		t.Errorf("since %v ago", age)
	}
	d.equal("flag", []string{f.Reason, f.Until}, []string{`deploy "42"`, ""})
	d.equal("no end", d.rdb.PTTL(t.Context(), d.k.Paused).Val(), time.Duration(-1))

	d.must(d.group().Pause(t.Context(), "", time.Hour))
	if ttl := d.rdb.PTTL(t.Context(), d.k.Paused).Val(); ttl <= 59*time.Minute || ttl > time.Hour {
		t.Errorf("ends in %v", ttl)
	}
	until, err := time.Parse(time.RFC3339, flag().Until)
	d.must(err)
	since, err = time.Parse(time.RFC3339, flag().Since)
	d.must(err)
	d.equal("until", until.Sub(since), time.Hour)

	d.must(d.group().Resume(t.Context()))
	d.must(d.group().Resume(t.Context()))
	d.equal("flag", d.rdb.Exists(t.Context(), d.k.Paused).Val(), 0)
	for _, bad := range []time.Duration{-1, time.Microsecond} {
		d.is(d.group().Pause(t.Context(), "", bad), xstreamq.ErrInvalidOption, bad.String())
	}
}

func TestGroupPending(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	var want []string
	for i := range 120 {
		id := fmt.Sprintf("%d-0", i+1)
		d.add(d.k.Main, id, "body", "x")
		want = append(want, id)
		if i%10 == 0 { // the same id in both streams
			d.add(d.k.Retry, id, "body", "x")
			want = append(want, id+" retry")
		}
	}
	d.read(d.k.Main, "g", "a", 100)
	d.read(d.k.Main, "g", "b", 100)
	d.read(d.k.Retry, "g", "b", 100)
	text := func(p xstreamq.PendingEntry) string {
		if p.Retry {
			return p.EntryID + " retry"
		}
		return p.EntryID
	}
	down := slices.Clone(want)
	slices.Reverse(down)
	for _, limit := range []int{1, 10, 1000} {
		for _, newest := range []bool{false, true} {
			var got []string
			for p := (xstreamq.Page{Limit: limit, Newest: newest}); ; {
				list, err := d.group().Pending(t.Context(), p)
				d.must(err)
				if len(list) == 0 {
					break
				}
				if len(list) > max(limit, 2) {
					t.Fatalf("%d entries, asked for %d", len(list), limit)
				}
				for _, e := range list {
					got = append(got, text(e))
				}
				p.After = list[len(list)-1].EntryID
			}
			all := want
			if newest {
				all = down
			}
			if len(got) != len(all) {
				t.Errorf("limit %d, newest %v: %d entries, want %d", limit, newest, len(got), len(all))
			}
			seen := strings.Join(got, ",")
			for _, id := range all {
				if !strings.Contains(","+seen+",", ","+id+",") {
					t.Errorf("limit %d, newest %v: %s is missing", limit, newest, id)
				}
			}
		}
	}
	list, err := d.group().Pending(t.Context(), xstreamq.Page{})
	d.must(err)
	if len(list) > 100 || len(list) < 99 {
		t.Errorf("%d by default", len(list))
	}
	d.equal("the first", []any{list[0].EntryID, list[0].Consumer, list[0].Deliveries}, []any{"1-0", "a", 1})
	if list[0].Idle < 0 || list[0].Idle > time.Minute {
		t.Errorf("idle %v", list[0].Idle)
	}
	_, err = d.group().Pending(t.Context(), xstreamq.Page{After: "nonsense"})
	d.is(err, xstreamq.ErrInvalidOption, "nonsense")
	_, err = d.group().Pending(t.Context(), xstreamq.Page{Limit: 1001})
	d.is(err, xstreamq.ErrInvalidOption)
}

func TestGroupConsumers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for range 5 {
		d.add(d.k.Main, "*", "body", "x")
	}
	d.add(d.k.Retry, "*", "body", "x")
	for name, visibility := range map[string]time.Duration{"c": 30 * time.Second, "idle": time.Minute} {
		ok, err := lua.Register(t.Context(), d.rdb, d.k, name, visibility, "v1")
		d.must(err)
		d.equal("registered", ok, true)
	}
	d.do("hset", d.k.Workers, "old", fmt.Sprintf("5000|%d|v|dead|", time.Now().Add(-time.Hour).UnixMilli()), "stray", "60000|1||foreign|", "torn", "junk")
	d.read(d.k.Main, "g", "c", 2)
	d.read(d.k.Retry, "g", "c", 1)
	d.read(d.k.Main, "g", "stray", 1)
	d.read(d.k.Main, "g", `"><svg onload=alert(1)>`, 1)
	all, err := d.group().Consumers(t.Context())
	d.must(err)
	var got []string
	for _, c := range all {
		beat := "ours"
		switch {
		case c.Heartbeat < 0:
			beat = "foreign"
		case c.Heartbeat >= 59*time.Minute && c.Heartbeat < 2*time.Hour:
			beat = "silent"
		case c.Heartbeat > time.Minute:
			beat = c.Heartbeat.String()
		}
		idle := "seen"
		if c.Idle < 0 {
			idle = "never"
		} else if c.Idle > time.Minute {
			idle = c.Idle.String()
		}
		got = append(got, fmt.Sprintf("%s %d %s %v %s", c.Name, c.Pending, beat, c.Visibility, idle))
	}
	d.equal("consumers", strings.Join(got, "\n"), strings.Join([]string{
		`"><svg onload=alert(1)> 1 foreign 0s seen`,
		"c 3 ours 30s seen",
		"idle 0 ours 1m0s never",
		"old 0 silent 5s never",
		"stray 1 foreign 0s seen",
		"torn 0 foreign 0s never",
	}, "\n"))
}

func TestGroupRemoveConsumer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	id := d.add(d.k.Main, "*", "body", "x")
	_, err := lua.Register(t.Context(), d.rdb, d.k, "c", time.Minute, "v1")
	d.must(err)
	d.read(d.k.Main, "g", "c", 1)
	d.is(d.group().RemoveConsumer(t.Context(), "c"), xstreamq.ErrNotEmpty, `"c"`, "1")
	pending, err := d.group().Pending(t.Context(), xstreamq.Page{})
	d.must(err)
	d.equal("it keeps what it holds", len(pending), 1)
	d.is(d.group().RemoveConsumer(t.Context(), "who"), xstreamq.ErrNotFound, `"who"`)
	d.do("xack", d.k.Main, "g", id)
	d.must(d.group().RemoveConsumer(t.Context(), "c"))
	all, err := d.group().Consumers(t.Context())
	d.must(err)
	d.equal("left", len(all), 0)
	if ok, err := lua.Heartbeat(t.Context(), d.rdb, d.k, "c"); ok || err != nil {
		t.Errorf("its heartbeat: %v, %v", ok, err)
	}
}

func TestGroupOfForeigners(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.do("xgroup", "create", d.k.Main, "g", "0", "mkstream")
	d.add(d.k.Main, "*", "body", "x")
	d.read(d.k.Main, "g", "theirs", 1)
	for name, call := range d.reads() {
		if err := call(t.Context()); err != nil && (name != "Get" || !errors.Is(err, xstreamq.ErrNotFound)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	pending, err := d.group().Pending(t.Context(), xstreamq.Page{})
	d.must(err)
	d.equal("pending", len(pending), 1)
	if _, err := d.rdb.XInfoGroups(t.Context(), d.k.Retry).Result(); err == nil || errors.Is(err, redis.Nil) {
		t.Error("a retry stream was made")
	}
}

// A pause is effective on every worker within two seconds at the interval that sweeps have by default, and its expiry ends it.
func TestPauseReachesEveryWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	told := make(chan string, 20)
	got := make(chan time.Time, 20)
	const workers = 3
	var clients []*xstreamq.Client
	for range workers {
		c := s.open(xstreamq.SweepInterval(time.Second), xstreamq.WithHooks(xstreamq.Hooks{
			Paused: func(_ context.Context, _ xstreamq.GroupRef, paused bool, reason string) {
				told <- fmt.Sprint(paused, " ", reason)
			},
		}))
		s.subscribe(c, func(context.Context, *xstreamq.Message[order]) error {
			got <- time.Now()
			return nil
		})
		s.start(c)
		clients = append(clients, c)
	}
	start := time.Now()
	if err := clients[0].Admin().Group("orders", "svc").Pause(t.Context(), "deploy", 4*time.Second); err != nil {
		t.Fatal(err)
	}
	for _, line := range receive(t, told, workers, "all are paused") {
		if line != "true deploy" {
			t.Errorf("told %q", line)
		}
	}
	if took := time.Since(start); took > 4*time.Second { // two on a machine that has nothing else to do
		t.Errorf("paused after %v", took)
	}
	s.publish(1, 3)
	for _, line := range receive(t, told, workers, "all go on") {
		if line != "false " {
			t.Errorf("told %q", line)
		}
	}
	if took := time.Since(start); took < 4*time.Second || took > 10*time.Second {
		t.Errorf("resumed after %v, want 4s to 10s", took)
	}
	for _, at := range receive(t, got, 3, "all after the pause") {
		if at.Sub(start) < 4*time.Second {
			t.Errorf("delivered %v after the pause began", at.Sub(start))
		}
	}
}
