package xstreamq_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// desk is an operator's: a client with a prefix of its own, and a raw connection to bring states about.
type desk struct {
	t      *testing.T
	rdb    redis.UniversalClient
	prefix string
	client *xstreamq.Client
	admin  *xstreamq.Admin
	k      keys.Group // stream s, group g
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	rdb := redistest.Deployed(t).Client(t)
	prefix := redistest.Prefix(t)
	return deskOn(t, rdb, prefix)
}

func deskOn(t *testing.T, rdb redis.UniversalClient, prefix string) *desk {
	t.Helper()
	c, err := xstreamq.New(rdb, xstreamq.Prefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &desk{t, rdb, prefix, c, c.Admin(), keys.NewStream(prefix, "s").Group("g")}
}

func (d *desk) stream() *xstreamq.StreamAdmin { return d.admin.Stream("s") }
func (d *desk) group() *xstreamq.GroupAdmin   { return d.admin.Group("s", "g") }

func (d *desk) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// is holds that err is want and that its text names what it is about.
func (d *desk) is(err, want error, names ...string) {
	d.t.Helper()
	if !errors.Is(err, want) {
		d.t.Errorf("error %v, want %v", err, want)
		return
	}
	for _, n := range names {
		if !strings.Contains(err.Error(), n) {
			d.t.Errorf("error %q does not name %q", err, n)
		}
	}
}

func (d *desk) equal(what string, got, want any) {
	d.t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		d.t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

func (d *desk) do(args ...any) any {
	d.t.Helper()
	v, err := d.rdb.Do(d.t.Context(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		d.t.Fatalf("%v: %v", args, err)
	}
	return v
}

// add appends an entry with id "*" or the given one.
func (d *desk) add(key, id string, fields ...string) string {
	d.t.Helper()
	args := []any{"xadd", key, id}
	for _, f := range fields {
		args = append(args, f)
	}
	return d.do(args...).(string)
}

// make creates a group as a subscription does.
func (d *desk) make(group string) {
	d.t.Helper()
	_, _, err := lua.EnsureGroup(d.t.Context(), d.rdb, d.k.Stream.Group(group), "0", lua.GroupStart, "")
	d.must(err)
	d.do("sadd", d.k.Registry(), d.k.Member(""), d.k.Member(group))
}

// read delivers entries of a stream to a consumer.
func (d *desk) read(key, group, consumer string, n int) []string {
	d.t.Helper()
	res, err := d.rdb.XReadGroup(d.t.Context(), &redis.XReadGroupArgs{
		Group: group, Consumer: consumer, Streams: []string{key, ">"}, Count: int64(n), Block: -1,
	}).Result()
	d.must(err)
	var ids []string
	for _, m := range res[0].Messages {
		ids = append(ids, m.ID)
	}
	return ids
}

// fail parks a delivery, due after delay, or buries it when max is 0.
func (d *desk) fail(id string, delay time.Duration, maxRetries int, text string) lua.Settled {
	d.t.Helper()
	res, err := lua.Settle(d.t.Context(), d.rdb, d.k, "c", 0, []lua.Settlement{
		{Verb: lua.Fail, Source: lua.Main, EntryID: id, Delay: delay, Limit: maxRetries, Error: text},
	})
	d.must(err)
	return res[0]
}

// bury adds a dead letter.
func (d *desk) bury(body string, more ...string) string {
	d.t.Helper()
	fields := append([]string{"body", body}, more...)
	if !slices.Contains(more, "reason") {
		fields = append(fields, "reason", "retries")
	}
	return d.add(d.k.DLQ, "*", fields...)
}

// state is everything under the desk's prefix, as Redis would save it.
func (d *desk) state() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	for _, key := range everyKey(d.t, d.rdb, d.prefix) {
		out[key] = d.rdb.Dump(d.t.Context(), key).Val()
	}
	return out
}

// unchanged holds that f writes nothing at all.
func (d *desk) unchanged(what string, f func()) {
	d.t.Helper()
	before := d.state()
	f()
	after := d.state()
	if !maps.Equal(before, after) {
		d.t.Errorf("%s changed what is stored:\nbefore %q\nafter  %q", what,
			slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
}

// reads are all calls that only look, on stream s and group g.
func (d *desk) reads() map[string]func(context.Context) error {
	s, g := d.stream(), d.group()
	return map[string]func(context.Context) error{
		"Stream.Depths": func(ctx context.Context) error { _, err := s.Depths(ctx); return err },
		"Peek":          func(ctx context.Context) error { _, err := s.Peek(ctx, xstreamq.Page{}); return err },
		"Get":           func(ctx context.Context) error { _, err := s.Get(ctx, "1-0"); return err },
		"Delayed":       func(ctx context.Context) error { _, err := s.Delayed(ctx, xstreamq.Page{}); return err },
		"Compact dry":   func(ctx context.Context) error { _, err := s.Compact(ctx, true); return err },
		"Why":           func(ctx context.Context) error { _, err := g.Why(ctx, "1-0"); return err },
		"Retention":     func(ctx context.Context) error { _, err := s.Retention(ctx); return err },
		"Group.Depth":   func(ctx context.Context) error { _, err := g.Depth(ctx); return err },
		"Pending":       func(ctx context.Context) error { _, err := g.Pending(ctx, xstreamq.Page{}); return err },
		"Retrying":      func(ctx context.Context) error { _, err := g.Retrying(ctx, xstreamq.Page{}); return err },
		"Consumers":     func(ctx context.Context) error { _, err := g.Consumers(ctx); return err },
		"DeadLetterPage": func(ctx context.Context) error {
			_, _, err := g.DeadLetterPage(ctx, xstreamq.Filter{}, xstreamq.Page{})
			return err
		},
		"RedriveAll dry": func(ctx context.Context) error {
			_, err := g.RedriveAll(ctx, xstreamq.Filter{}, xstreamq.Bulk{DryRun: true})
			return err
		},
		"PurgeAll dry": func(ctx context.Context) error {
			_, err := g.PurgeAll(ctx, xstreamq.Filter{All: true}, xstreamq.Bulk{DryRun: true})
			return err
		},
		"DeadLetters": func(ctx context.Context) error {
			for _, err := range g.DeadLetters(ctx, xstreamq.Filter{}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// writes are all calls that need something to be there, on stream s and group g.
func (d *desk) writes() map[string]func(context.Context) error {
	s, g := d.stream(), d.group()
	return map[string]func(context.Context) error{
		"CancelDelayed":  func(ctx context.Context) error { return s.CancelDelayed(ctx, "d-1-00") },
		"Compact":        func(ctx context.Context) error { _, err := s.Compact(ctx, false); return err },
		"SetRetention":   func(ctx context.Context) error { return s.SetRetention(ctx, time.Hour) },
		"Delete":         func(ctx context.Context) error { return g.Delete(ctx, false) },
		"Seek":           func(ctx context.Context) error { return g.Seek(ctx, xstreamq.Head) },
		"RemoveConsumer": func(ctx context.Context) error { return g.RemoveConsumer(ctx, "c") },
		"Pause":          func(ctx context.Context) error { return g.Pause(ctx, "", 0) },
		"Resume":         func(ctx context.Context) error { return g.Resume(ctx) },
		"Redrive": func(ctx context.Context) error {
			_, err := g.Redrive(ctx, "1-0", xstreamq.RedriveOptions{})
			return err
		},
		"Purge": func(ctx context.Context) error { return g.Purge(ctx, "1-0") },
		"RedriveAll": func(ctx context.Context) error {
			_, err := g.RedriveAll(ctx, xstreamq.Filter{}, xstreamq.Bulk{})
			return err
		},
		"PurgeAll": func(ctx context.Context) error {
			_, err := g.PurgeAll(ctx, xstreamq.Filter{All: true}, xstreamq.Bulk{})
			return err
		},
	}
}

func TestAdminUnknownStreamCreatesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for name, call := range d.reads() {
		d.unchanged(name, func() { d.is(call(t.Context()), xstreamq.ErrNotFound, "s") })
	}
	for name, call := range d.writes() {
		d.unchanged(name, func() { d.is(call(t.Context()), xstreamq.ErrNotFound, "s") })
	}
}

func TestAdminUnknownGroupCreatesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("other")
	d.add(d.k.Main, "*", "body", "x")
	for name, call := range d.reads() {
		if strings.HasPrefix(name, "Stream") || slices.Contains([]string{"Peek", "Get", "Delayed", "Compact dry", "Retention", "Why"}, name) {
			continue // of the stream, which is there; and a missing group is an answer of Why
		}
		d.unchanged(name, func() { d.is(call(t.Context()), xstreamq.ErrNotFound, "s/g") })
	}
	for name, call := range d.writes() {
		if slices.Contains([]string{"CancelDelayed", "Compact", "SetRetention"}, name) {
			continue
		}
		d.unchanged(name, func() { d.is(call(t.Context()), xstreamq.ErrNotFound, "s/g") })
	}
}

func TestAdminReadsChangeNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	for i := range 6 {
		d.add(d.k.Main, fmt.Sprintf("%d-0", i+1), "body", "x")
	}
	_, _, err := lua.Publish(t.Context(), d.rdb, d.k.Stream, lua.Publication{Delay: time.Hour, Random: "00", Fields: []string{"body", "y"}})
	d.must(err)
	_, err = lua.Register(t.Context(), d.rdb, d.k, "c", time.Minute, "v")
	d.must(err)
	d.read(d.k.Main, "g", "c", 3)
	d.fail("1-0", time.Hour, 5, "boom")
	d.fail("2-0", time.Hour, 0, "boom")
	d.add(d.k.Retry, "*", "body", "z", "oid", "9-9")
	d.read(d.k.Retry, "g", "c", 1)
	d.must(d.group().Pause(t.Context(), "test", time.Hour))
	for name, call := range d.reads() {
		d.unchanged(name, func() { d.must(call(t.Context())) })
	}
	d.unchanged("Depths", func() {
		all, err := d.admin.Depths(t.Context())
		d.must(err)
		d.equal("depths", len(all), 1)
	})
	d.unchanged("Registered", func() {
		_, err := d.admin.Registered(t.Context())
		d.must(err)
	})
}

func TestAdminRegistered(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	got, err := d.admin.Registered(t.Context())
	d.must(err)
	d.equal("none", len(got), 0)
	d.do("sadd", d.k.Registry(), `["s","g"]`, `["s",""]`, `["a<b","x&y"]`, `[ "s", "g" ]`, // other languages write it otherwise
		`["s"]`, `["s",1]`, `{}`, `nonsense`, `["a b",""]`, `["",""]`)
	d.do("sadd", keys.NewStream(d.prefix+"2", "s").Registry(), `["foreign",""]`)
	got, err = d.admin.Registered(t.Context())
	d.must(err)
	d.equal("registered", got, []xstreamq.GroupRef{{Stream: "a<b", Group: "x&y"}, {Stream: "s"}, {Stream: "s", Group: "g"}})
}

// A name with dots, stars or brackets must never be taken for another, nor for a pattern.
func TestAdminNamesKeepApart(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	names := []string{"a", "a:b", "a.b", "a*", "a[b", "a/b", "a%2Fb", "a#b", "ünïcode", "a.retry", "a.dlq", strings.Repeat("n", 200)}
	for _, s := range names {
		for _, g := range names {
			created, err := d.admin.Group(s, g).Create(t.Context(), xstreamq.Head)
			d.must(err)
			d.equal("created", created, true)
			k := keys.NewStream(d.prefix, s).Group(g)
			d.add(k.DLQ, "*", "body", s+" "+g, "reason", "retries")
			d.add(k.DLQ, "*", "reason", "no-body")
		}
		d.add(keys.NewStream(d.prefix, s).Main, "*", "body", s)
	}
	res, err := d.admin.Group("a*", "a*").PurgeAll(t.Context(), xstreamq.Filter{All: true}, xstreamq.Bulk{})
	d.must(err)
	d.equal("purged", res.Done, 2)
	res, err = d.admin.Group("a.b", "a").RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{})
	d.must(err)
	d.equal("redriven", []int{res.Done, res.Remaining, len(res.Unredrivable)}, []int{1, 1, 1})
	all, err := d.admin.Depths(t.Context())
	d.must(err)
	d.equal("groups", len(all), len(names)*len(names))
	for _, depth := range all {
		dead, retrying := int64(2), int64(0)
		switch depth.GroupRef {
		case xstreamq.GroupRef{Stream: "a*", Group: "a*"}:
			dead = 0
		case xstreamq.GroupRef{Stream: "a.b", Group: "a"}:
			dead, retrying = 1, 1
		}
		if depth.Dead != dead || depth.Retrying != retrying || depth.Length != 1 || depth.Lag == nil || *depth.Lag != 1 {
			t.Errorf("%+v", depth)
		}
	}
	for _, s := range names {
		page, err := d.admin.Stream(s).Peek(t.Context(), xstreamq.Page{})
		d.must(err)
		d.equal("peek of "+s, string(page.Items[0].Body), s)
	}
}

func TestAdminRefusesNames(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, bad := range []string{"", " ", "a b", "}x", "{", "a{b}c", "a\nb", "\xff", strings.Repeat("n", 201)} {
		d.unchanged("a bad name", func() {
			_, err := d.admin.Stream(bad).Depths(t.Context())
			d.is(err, xstreamq.ErrInvalidName, fmt.Sprintf("%q", bad))
			_, err = d.admin.Stream(bad).Peek(t.Context(), xstreamq.Page{})
			d.is(err, xstreamq.ErrInvalidName)
			_, err = d.admin.Group("s", bad).Create(t.Context(), xstreamq.Head)
			d.is(err, xstreamq.ErrInvalidName, fmt.Sprintf("%q", bad))
			_, err = d.admin.Group(bad, "g").PurgeAll(t.Context(), xstreamq.Filter{All: true}, xstreamq.Bulk{})
			d.is(err, xstreamq.ErrInvalidName, fmt.Sprintf("%q", bad))
		})
	}
}

func TestAdminOfClosedAndZeroClient(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.must(d.client.Close())
	zero := &desk{t: t, admin: (&xstreamq.Client{}).Admin()}
	for _, of := range []*desk{d, zero} {
		for name, call := range of.reads() {
			if err := call(t.Context()); !errors.Is(err, xstreamq.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		for name, call := range of.writes() {
			if err := call(t.Context()); !errors.Is(err, xstreamq.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := of.admin.Depths(t.Context())
		d.is(err, xstreamq.ErrClosed)
		_, err = of.admin.Doctor(t.Context())
		d.is(err, xstreamq.ErrClosed)
		_, err = of.group().Create(t.Context(), xstreamq.Head)
		d.is(err, xstreamq.ErrClosed)
	}
	if _, err := new(xstreamq.Admin).Registered(t.Context()); !errors.Is(err, xstreamq.ErrClosed) {
		t.Errorf("zero Admin: %v", err)
	}
}

func TestAdminServerAwayAndForbidden(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	d := deskOn(t, server.Client(t), redistest.Prefix(t))
	d.make("g")
	d.add(d.k.Main, "*", "body", "x")
	d.do("acl", "setuser", "reader", "on", ">p", "~*", "+@read", "+ping", "+hello", "+client")
	reader := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "reader", Password: "p"})
	defer func() { _ = reader.Close() }()
	only := deskOn(t, reader, d.prefix)
	depth, err := only.group().Depth(t.Context())
	d.must(err) // no TIME, no script: still all but the lag
	d.equal("depth", []any{depth.Length, depth.Lag == nil, depth.Oldest}, []any{1, true, time.Duration(0)})
	_, err = only.stream().Peek(t.Context(), xstreamq.Page{})
	d.must(err)
	d.is(only.group().Pause(t.Context(), "", 0), xstreamq.ErrAuth, "NOPERM")
	_, err = only.group().Create(t.Context(), xstreamq.Head)
	d.is(err, xstreamq.ErrAuth)

	quick := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = quick.Close() }()
	d = deskOn(t, quick, d.prefix)
	server.Kill()
	_, err = d.group().Depth(t.Context())
	d.is(err, xstreamq.ErrUnavailable, "depth of s/g")
	_, err = d.admin.Depths(t.Context())
	d.is(err, xstreamq.ErrUnavailable)
	_, err = d.group().Create(t.Context(), xstreamq.Head)
	d.is(err, xstreamq.ErrUnavailable)
}

func TestAdminRefusesNewerFormat(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.do("hset", d.k.Stream.Meta, "format", "2")
	_, err := d.group().Depth(t.Context())
	d.is(err, xstreamq.ErrFormat, "2")
	_, err = d.stream().Peek(t.Context(), xstreamq.Page{})
	d.is(err, xstreamq.ErrFormat)
	_, err = d.admin.Group("s", "new").Create(t.Context(), xstreamq.Head)
	d.is(err, xstreamq.ErrFormat)
	d.is(d.stream().SetRetention(t.Context(), 0), xstreamq.ErrFormat)
}
