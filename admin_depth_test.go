package xstreamq_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// lagOf is the depth's lag as text, "unknown" when it is not known.
func (d *desk) lagOf() string {
	d.t.Helper()
	depth, err := d.group().Depth(d.t.Context())
	d.must(err)
	if depth.Lag == nil {
		return "unknown"
	}
	return strconv.FormatInt(*depth.Lag, 10)
}

func TestAdminDepthCounts(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for range 9 {
		d.add(d.k.Main, "*", "body", "x")
	}
	ids := d.read(d.k.Main, "g", "c", 6)
	d.fail(ids[0], time.Hour, 5, "boom") // retrying
	d.fail(ids[1], time.Hour, 5, "boom")
	d.fail(ids[2], time.Hour, 0, "boom") // dead
	for range 4 {
		d.add(d.k.Retry, "*", "body", "r")
	}
	d.read(d.k.Retry, "g", "c", 1)
	for i := range 5 {
		_, _, err := lua.Publish(t.Context(), d.rdb, d.k.Stream, lua.Publication{Delay: time.Hour, Random: strconv.Itoa(i), Fields: []string{"body", "y"}})
		d.must(err)
	}
	depth, err := d.group().Depth(t.Context())
	d.must(err)
	d.equal("lag", d.lagOf(), 3)
	if depth.Oldest < 0 || depth.Oldest > time.Minute {
		t.Errorf("oldest: %v", depth.Oldest)
	}
	d.equal("read", *depth.Read, 6)
	depth.Lag, depth.Read, depth.Oldest = nil, nil, 0
	want := xstreamq.Depth{
		GroupRef: xstreamq.GroupRef{Stream: "s", Group: "g"}, Length: 9, Pending: 4, Retry: 3, Retrying: 2, Delayed: 5, Dead: 1, Consumers: 1,
	}
	d.equal("depth", depth, want)

	paused := func() *xstreamq.Pause {
		t.Helper()
		depth, err := d.group().Depth(t.Context())
		d.must(err)
		d.equal("paused", depth.Paused, depth.Pause != nil)
		return depth.Pause
	}
	d.must(d.group().Pause(t.Context(), "deploy", time.Hour))
	p := paused()
	d.equal("pause", []any{p.Reason, p.Until.Sub(p.Since)}, []any{"deploy", time.Hour})
	if age := d.rdb.Time(t.Context()).Val().Sub(p.Since); age < 0 || age > time.Minute {
		t.Errorf("paused since %v ago", age)
	}
	d.must(d.group().Pause(t.Context(), "", 0))
	d.equal("without an end", paused().Until.IsZero(), true)
	d.do("set", d.k.Paused, "by hand")
	d.equal("by hand", *paused(), xstreamq.Pause{Reason: "by hand"})
	d.do("set", d.k.Paused, "")
	d.equal("an empty flag", paused() == nil, true)
	d.must(d.group().Resume(t.Context()))
	d.equal("resumed", paused() == nil, true)
}

// The server's own lag is 3 on 7.0 where nothing is left to read, and null after an unread entry was deleted.
func TestAdminLagIsTrueWhereTheServerIsWrong(t *testing.T) {
	t.Parallel()
	t.Run("trimmed", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		d.make("g")
		for range 5 {
			d.add(d.k.Main, "*", "body", "x")
		}
		d.read(d.k.Main, "g", "c", 1)
		d.do("xtrim", d.k.Main, "maxlen", 1)
		d.equal("before the read", d.lagOf(), 1)
		d.read(d.k.Main, "g", "c", 9)
		d.equal("after it", d.lagOf(), 0)
	})
	t.Run("unread deleted", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		d.make("g")
		var ids []string
		for range 5 {
			ids = append(ids, d.add(d.k.Main, "*", "body", "x"))
		}
		d.read(d.k.Main, "g", "c", 2)
		d.do("xdel", d.k.Main, ids[3])
		d.equal("lag", d.lagOf(), 2)
		d.do("xdel", d.k.Main, ids[2], ids[4])
		d.equal("lag", d.lagOf(), 0)
	})
	t.Run("beyond what is counted", func(t *testing.T) {
		t.Parallel()
		d := newDesk(t)
		d.make("g")
		d.fill(12_000, "1")
		d.equal("all of it unread", d.lagOf(), 12_000)
		first := d.read(d.k.Main, "g", "c", 10)
		d.equal("the server's word", d.lagOf(), 11_990)
		d.do("xdel", d.k.Main, d.add(d.k.Main, "*", "body", "x")) // from now on the server cannot tell
		d.do("xack", d.k.Main, "g", first[0])
		info, err := d.rdb.XInfoGroups(t.Context(), d.k.Main).Result()
		d.must(err)
		if info[0].Lag >= 0 && info[0].Lag != 11_990 {
			t.Errorf("the server says %d", info[0].Lag)
		}
		if got := d.lagOf(); got != "unknown" && got != "11990" {
			t.Errorf("lag %s, want it unknown or true", got)
		}
		d.do("xtrim", d.k.Main, "maxlen", 9000)
		d.equal("counted again", d.lagOf(), 9000)
	})
}

// fill adds many entries in one go.
func (d *desk) fill(n int, ms string) {
	d.t.Helper()
	p := d.rdb.Pipeline()
	for i := range n {
		p.XAdd(d.t.Context(), &redis.XAddArgs{Stream: d.k.Main, ID: fmt.Sprintf("%s-%d", ms, i+1), Values: []string{"body", "x"}})
	}
	_, err := p.Exec(d.t.Context())
	d.must(err)
}

func TestAdminDepthOfLostGroup(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for i := range 5 {
		d.add(d.k.Main, fmt.Sprintf("%d-0", i+1), "body", "x")
	}
	d.do("hset", d.k.Groups, "g", "2-0|1")
	d.do("xgroup", "destroy", d.k.Main, "g")
	d.equal("from its recorded position", d.lagOf(), 3)

	d.do("del", d.k.Main)
	d.equal("without a stream", d.lagOf(), 0)

	d.do("hdel", d.k.Groups, "g")
	_, err := d.group().Depth(t.Context())
	d.is(err, xstreamq.ErrNotFound)
	d.bury("left")
	depth, err := d.group().Depth(t.Context())
	d.must(err)
	d.equal("dead letters keep a group", depth.Dead, 1)
	all, err := d.stream().Depths(t.Context())
	d.must(err)
	d.equal("and its stream", len(all), 1)
}

func TestAdminOldest(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	now := d.rdb.Time(t.Context()).Val()
	ago := func(age time.Duration, seq int) string { return fmt.Sprintf("%d-%d", now.Add(-age).UnixMilli(), seq) }
	oldest := func(what string, want time.Duration) {
		t.Helper()
		depth, err := d.group().Depth(t.Context())
		d.must(err)
		if depth.Oldest < want || depth.Oldest > want+time.Minute || want == 0 && depth.Oldest != 0 {
			t.Errorf("%s: %v, want %v", what, depth.Oldest, want)
		}
	}
	oldest("nothing", 0)
	d.add(d.k.Main, ago(9*time.Hour, 0), "body", "x")
	d.add(d.k.Main, ago(2*time.Hour, 0), "body", "x")
	oldest("unread", 9*time.Hour)
	ids := d.read(d.k.Main, "g", "c", 1)
	oldest("in flight", 9*time.Hour)
	d.do("xack", d.k.Main, "g", ids[0])
	oldest("acked, history", 2*time.Hour)
	d.add(d.k.Retry, ago(5*time.Hour, 0), "body", "x")
	oldest("due for a retry", 5*time.Hour)
	d.read(d.k.Retry, "g", "c", 1)
	oldest("retry in flight", 5*time.Hour)

	ahead := newDesk(t)
	ahead.make("g")
	ahead.add(ahead.k.Main, "9999999999999-0", "body", "x")
	depth, err := ahead.group().Depth(t.Context())
	ahead.must(err)
	ahead.equal("an id ahead of the clock", depth.Oldest, time.Duration(0))
}

func TestAdminDepthsOfAll(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.make("b")
	d.add(d.k.Main, "*", "body", "x")
	d.do("xgroup", "create", d.k.Main, "foreign group", "0")
	d.do("sadd", d.k.Registry(), `["lone",""]`, `["gone","h"]`, `["gone",""]`, `["s","never-made"]`)
	lone := strings.Replace(d.k.Main, "{s}", "{lone}", 1)
	d.add(lone, "*", "body", "x")
	all, err := d.admin.Depths(t.Context())
	d.must(err)
	var got []string
	for _, depth := range all {
		lag := "?"
		if depth.Lag != nil {
			lag = strconv.FormatInt(*depth.Lag, 10)
		}
		got = append(got, fmt.Sprintf("%s|%s %d %s", depth.Stream, depth.Group, depth.Length, lag))
	}
	want := []string{"gone|h 0 0", "lone| 1 ?", "s|b 1 1", "s|foreign group 1 1", "s|g 1 1", "s|never-made 1 ?"}
	d.equal("depths", strings.Join(got, ", "), strings.Join(want, ", "))

	one, err := d.stream().Depths(t.Context())
	d.must(err)
	d.equal("of one stream", len(one), 3)
	_, err = d.admin.Stream("gone").Depths(t.Context())
	d.is(err, xstreamq.ErrNotFound)

	// A removed group is gone from the list, also where the registry still has it.
	d.must(d.admin.Group("s", "b").Delete(t.Context(), true))
	d.do("sadd", d.k.Registry(), d.k.Member("b"))
	one, err = d.stream().Depths(t.Context())
	d.must(err)
	d.equal("after a removal", len(one), 2)
	all, err = d.admin.Depths(t.Context())
	d.must(err)
	d.equal("of all after a removal", len(all), len(want)-1)
}

func TestAdminDepthsGoOnPastBrokenKeys(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.do("set", d.k.DLQ, "oops")
	d.do("sadd", d.k.Registry(), `["wrong",""]`, `["z","g"]`)
	d.do("set", strings.Replace(d.k.Main, "{s}", "{wrong}", 1), "oops")
	d.do("xgroup", "create", strings.Replace(d.k.Main, "{s}", "{z}", 1), "g", "0", "mkstream")
	all, err := d.admin.Depths(t.Context())
	if err == nil || !strings.Contains(err.Error(), d.k.DLQ) || !strings.Contains(err.Error(), "{wrong}") {
		t.Errorf("the error names the keys: %v", err)
	}
	d.equal("the rest", len(all), 1)
	if len(all) == 1 {
		d.equal("the rest", all[0].Stream, "z")
	}
}

// roundTrips notes what a client sends and waits for: a command's name, or "pipeline".
type roundTrips struct {
	mu   sync.Mutex
	sent []string
}

func (r *roundTrips) add(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, name)
}

func (r *roundTrips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *roundTrips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.add(cmd.Name())
		return next(ctx, cmd)
	}
}

func (r *roundTrips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r.add("pipeline")
		return next(ctx, cmds)
	}
}

// A view of many groups asks no more often than one of few: whoever watches them does so every second or two.
func TestAdminDepthsAskedInTwoPipelines(t *testing.T) {
	t.Parallel()
	d := deskOn(t, redistest.Shared(t).Client(t), redistest.Prefix(t)) // a cluster asks its nodes for the time, each by its own client
	for i := range 20 {
		for _, g := range []string{"a", "b"} {
			_, err := d.admin.Group(fmt.Sprintf("s%d", i), g).Create(t.Context(), xstreamq.Head)
			d.must(err)
		}
	}
	var sent roundTrips
	d.rdb.AddHook(&sent)
	all, err := d.admin.Depths(t.Context())
	d.must(err)
	d.equal("groups", len(all), 40)
	got := strings.ReplaceAll(strings.Join(sent.sent, " "), "hello pipeline ", "") // a new connection's greeting
	d.equal("sent", got, "smembers pipeline pipeline time")
}

// What lies behind one group lies behind all before it, and is counted once: many groups cost little more than one.
func TestLagsOfManyGroups(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := s.rdb.Pipeline()
	for range 12_000 {
		p.XAdd(t.Context(), &redis.XAddArgs{Stream: s.keys.Main, Values: []string{"body", "1"}})
	}
	added, err := p.Exec(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(added))
	for i, cmd := range added {
		ids[i] = cmd.(*redis.StringCmd).Val()
	}
	want := map[string]int64{} // -1: more than is counted, and the server does not tell
	for i := range 60 {
		read := []int{12_000, 11_999, 11_000 - i, 1_000 - i, 0, 5_000}[i%6]
		name, at := fmt.Sprintf("g%02d", (i*37)%60), "0"
		if read > 0 {
			at = ids[read-1]
		}
		if err := s.rdb.XGroupCreate(t.Context(), s.keys.Main, name, at).Err(); err != nil {
			t.Fatal(err)
		}
		if want[name] = int64(12_000 - read); read > 0 && want[name] > 10_000 {
			want[name] = -1
		}
	}
	if err := s.rdb.XDel(t.Context(), s.keys.Main, ids[100]).Err(); err != nil { // the server's own figures are gone
		t.Fatal(err)
	}
	for name, n := range want {
		if n == 12_000 {
			want[name]--
		}
	}
	before := s.commands("evalsha")
	depths, err := s.open().Admin().Stream("orders").Depths(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range depths {
		got := int64(-1)
		if d.Lag != nil {
			got = *d.Lag
		}
		if got != want[d.Group] {
			t.Errorf("%s: a lag of %d, want %d", d.Group, got, want[d.Group])
		}
		if i > 0 && depths[i-1].Group >= d.Group {
			t.Errorf("%s comes before %s", depths[i-1].Group, d.Group)
		}
	}
	if len(depths) != 60 {
		t.Errorf("%d groups", len(depths))
	}
	if n := s.commands("evalsha") - before; n > 200 {
		t.Errorf("%d scripts ran for 60 groups, each of which alone takes up to 22", n)
	}
}

// Many streams share what is counted; one alone is counted further.
func TestAdminDepthsOfManyStreamsCountLess(t *testing.T) {
	t.Parallel()
	d := deskOn(t, redistest.Shared(t).Client(t), redistest.Prefix(t)) // as above
	const streams, entries = 10, 9000
	for i := range streams {
		s := *d
		s.k = keys.NewStream(d.prefix, fmt.Sprintf("s%d", i)).Group("g")
		s.make("g")
		s.fill(entries+1, "4")
		s.read(s.k.Main, "g", "c", 1)
	}
	var sent roundTrips
	d.rdb.AddHook(&sent)
	all, err := d.admin.Depths(t.Context())
	d.must(err)
	d.equal("depths", len(all), streams)
	if most := streams * (40_000/streams/250 + 4); len(sent.sent) > most {
		t.Errorf("%d round trips for %d streams, want %d at most", len(sent.sent), streams, most)
	}
	one, err := d.admin.Group("s7", "g").Depth(t.Context())
	d.must(err)
	d.equal("one alone", *one.Lag, entries)
}

// A group of others may be named by any bytes: they are returned as they are, and quoted in errors.
func TestAdminNamesOfOthersStayHarmless(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	const evil = "evil\x1b]0;x\x07\xff"
	d.do("xgroup", "create", d.k.Main, evil, "0")
	all, err := d.admin.Depths(t.Context())
	d.must(err)
	d.equal("as it is", all[0].Group, evil)
	d.do("set", d.k.Stream.Group(evil).Retry, "oops")
	_, err = d.admin.Depths(t.Context())
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07") || !strings.Contains(err.Error(), `s/evil\x1b]0;x\a\xff`) {
		t.Errorf("%q", err)
	}
	f := d.doctor("dead letters")
	if strings.ContainsAny(f.Detail, "\x1b\x07") {
		t.Errorf("%q", f.Detail)
	}
	_, err = d.admin.Group("s", "a\u202eb").Depth(t.Context())
	d.is(err, xstreamq.ErrNotFound, `"s/a\u202eb"`)
}
