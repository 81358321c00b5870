package xstreamq_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

var (
	moments   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	distances = regexp.MustCompile(`\((in )?(\d+h)?(\d+m)?\d+s( ago)?\)|\(now\)`)
)

// why is the answer on one line; moments are T, and how far they are is rounded to hours.
func (d *desk) why(id string) string {
	d.t.Helper()
	w, err := d.group().Why(d.t.Context(), id)
	d.must(err)
	text := distances.ReplaceAllStringFunc(moments.ReplaceAllString(w.Detail, "T"), func(s string) string {
		switch {
		case strings.HasPrefix(s, "(in ") && strings.Contains(s, "h"), strings.HasPrefix(s, "(in 59m"):
			return "(in hours)"
		case strings.HasPrefix(s, "(in "):
			return "(soon)"
		case strings.Contains(s, "h"):
			return "(hours ago)"
		}
		return "(just now)"
	})
	more := ""
	if w.Ahead != nil {
		more += fmt.Sprintf(" ahead=%d", *w.Ahead)
	}
	if w.Consumer != "" {
		more += " consumer=" + w.Consumer
	}
	if !w.Due.IsZero() {
		more += " due"
	}
	if w.Record != nil {
		more += " id=" + w.Record.ID + " entry=" + w.Record.EntryID
	}
	return w.State + more + "\n" + text
}

// register gives a consumer a lease.
func (d *desk) register(name string) {
	d.t.Helper()
	_, err := lua.Register(d.t.Context(), d.rdb, d.k, name, time.Minute, "v")
	d.must(err)
}

// lapsed gives a consumer a lease that ended long ago.
func (d *desk) lapsed(name string) {
	d.t.Helper()
	d.do("hset", d.k.Workers, name, fmt.Sprintf("60000|%d|1|live|", d.now().Add(-3*time.Hour).UnixMilli()))
}

func (d *desk) now() time.Time { return d.rdb.Time(d.t.Context()).Val() }

// park parks fields as a failure that is due in so long.
func (d *desk) park(member string, due time.Duration, fields ...string) {
	d.t.Helper()
	d.do("hset", d.k.Parked, member, wire.Pack(fields))
	d.do("zadd", d.k.Due, d.now().Add(due).UnixMilli(), member)
}

// whyCases are the states that a message may be in, each with the whole answer.
var whyCases = []struct {
	name string
	make func(d *desk) string // brings it about, and answers the id to ask for
	want string
}{
	{"next to be read", func(d *desk) string {
		d.register("w")
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting ahead=0 id=5-0 entry=5-0\nWaits in the stream, next to be read. 1 worker reads the group."},

	{"behind others", func(d *desk) string {
		d.register("w")
		d.register("v")
		d.fill(13, "4")
		d.read(d.k.Main, "g", "w", 1)
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting ahead=12 id=5-0 entry=5-0\nWaits in the stream behind 12 others. 2 workers read the group."},

	{"behind more than are counted", func(d *desk) string {
		d.register("w")
		d.fill(10_500, "4")
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting id=5-0 entry=5-0\nWaits in the stream behind more than 10,000 others. 1 worker reads the group."},

	{"published later, now in the stream", func(d *desk) string {
		d.register("w")
		d.fill(700, "4")
		d.add(d.k.Main, "5-0", "body", "x", "oid", "d-4-aa")
		return "d-4-aa"
	}, "waiting ahead=700 id=d-4-aa entry=5-0\nWaits in the stream behind 700 others. 1 worker reads the group."},

	{"waits for another attempt", func(d *desk) string {
		d.register("w")
		d.add(d.k.Main, "5-0", "body", "x")
		d.read(d.k.Main, "g", "w", 1)
		d.do("xack", d.k.Main, "g", "5-0")
		d.add(d.k.Retry, "6-0", "body", "before")
		d.add(d.k.Retry, "7-0", "body", "x", "oid", "5-0", "rc", "2", "err", "boom")
		return "5-0"
	}, "waiting ahead=1 id=5-0 entry=7-0\nWaits in the retry stream behind 1 other, after 2 failed attempts (the last: \"boom\"). 1 worker reads the group."},

	{"paused for a time", func(d *desk) string {
		d.register("w")
		d.must(d.group().Pause(d.t.Context(), "deploy \x1b[31m", 2*time.Hour))
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting ahead=0 id=5-0 entry=5-0\nWaits in the stream, next to be read. The group has been paused since T (just now), until T (in hours) or until somebody resumes it: \"deploy \\x1b[31m\"."},

	{"paused until resumed", func(d *desk) string {
		d.register("w")
		d.must(d.group().Pause(d.t.Context(), "", 0))
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting ahead=0 id=5-0 entry=5-0\nWaits in the stream, next to be read. The group has been paused since T (just now), until somebody resumes it."},

	{"paused by hand", func(d *desk) string {
		d.do("set", d.k.Paused, "wait\x07")
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting ahead=0 id=5-0 entry=5-0\nWaits in the stream, next to be read. The group is paused, until somebody resumes it: \"wait\\a\"."},

	{"no worker ever", func(d *desk) string {
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting ahead=0 id=5-0 entry=5-0\nWaits in the stream, next to be read. Nobody reads the group: none was ever seen. Start a worker."},

	{"no worker any more", func(d *desk) string {
		d.do("hset", d.k.Meta, "swept", d.now().Add(-3*time.Hour).UnixMilli())
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting ahead=0 id=5-0 entry=5-0\nWaits in the stream, next to be read. Nobody reads the group: the last was seen at T (hours ago). Start a worker."},

	{"the group is lost", func(d *desk) string {
		d.add(d.k.Main, "4-0", "body", "x")
		d.do("hset", d.k.Groups, "g", "4-0|1")
		d.do("xgroup", "destroy", d.k.Main, "g")
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting ahead=0 id=5-0 entry=5-0\nWaits in the stream, next to be read. Redis has lost the group, and no worker lives that would make it again where it stood: start one (none was ever seen)."},

	{"a group of others", func(d *desk) string {
		d.do("hdel", d.k.Groups, "g")
		d.add(d.k.Main, "4-0", "body", "x")
		d.read(d.k.Main, "g", "py", 1)
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "waiting ahead=0 id=5-0 entry=5-0\nWaits in the stream, next to be read. The group is read by other consumers than this library's; the last was seen at T (just now)."},

	{"the group does not exist", func(d *desk) string {
		d.do("hdel", d.k.Groups, "g")
		d.do("xgroup", "destroy", d.k.Main, "g")
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "unknown id=5-0 entry=5-0\nThe group does not exist, so nothing is kept for it and nobody reads it. Create it at the head of the stream, or start a worker of it."},

	{"the group was removed", func(d *desk) string {
		d.must(d.group().Delete(d.t.Context(), true))
		return d.add(d.k.Main, "5-0", "body", "x")
	}, "unknown id=5-0 entry=5-0\nThe group was removed, so nothing is kept for it and nobody reads it. Create it at the head of the stream, or start a worker of it."},

	{"in flight", func(d *desk) string {
		d.register("w")
		d.add(d.k.Main, "5-0", "body", "x")
		return d.read(d.k.Main, "g", "w", 1)[0]
	}, "in-flight consumer=w due id=5-0 entry=5-0\nConsumer \"w\" was given it at T (just now). Its lease is renewed while it lives; without a heartbeat it ends at T (soon)."},

	{"another attempt in flight", func(d *desk) string {
		d.register("w")
		d.add(d.k.Retry, "7-0", "body", "x", "oid", "5-0", "rc", "1", "err", "boom", "lost", "2")
		d.read(d.k.Retry, "g", "w", 1)
		return "5-0"
	}, "in-flight consumer=w due id=5-0 entry=7-0\nConsumer \"w\" was given it at T (just now), after 1 failed attempt (the last: \"boom\") and 2 lost workers in a row. Its lease is renewed while it lives; without a heartbeat it ends at T (soon)."},

	{"in flight, its worker dead", func(d *desk) string {
		d.lapsed("w")
		d.register("v")
		d.add(d.k.Main, "5-0", "body", "x")
		return d.read(d.k.Main, "g", "w", 1)[0]
	}, "in-flight consumer=w due id=5-0 entry=5-0\nConsumer \"w\" was given it at T (just now). Its lease ended at T (hours ago): another worker takes the message over within seconds."},

	{"in flight, all workers dead", func(d *desk) string {
		d.lapsed("w")
		d.add(d.k.Main, "5-0", "body", "x")
		return d.read(d.k.Main, "g", "w", 1)[0]
	}, "in-flight consumer=w due id=5-0 entry=5-0\nConsumer \"w\" was given it at T (just now). Its lease ended at T (hours ago), and no worker lives that could take the message over: start one."},

	{"in flight with a stranger, beside workers", func(d *desk) string {
		d.register("v")
		d.add(d.k.Main, "5-0", "body", "x")
		return d.read(d.k.Main, "g", "stranger\x1b", 1)[0]
	}, "in-flight consumer=stranger\x1b id=5-0 entry=5-0\nConsumer \"stranger\\x1b\", which has no lease of this library, was given it at T (just now). Unless it acknowledges it, a worker takes it over when the longest visibility timeout of the group has passed."},

	{"in flight with a stranger", func(d *desk) string {
		d.add(d.k.Main, "5-0", "body", "x")
		return d.read(d.k.Main, "g", "py", 1)[0]
	}, "in-flight consumer=py id=5-0 entry=5-0\nConsumer \"py\", which has no lease of this library, was given it at T (just now). It stays there until that consumer acknowledges it, or a worker of this library reads the group."},

	{"in flight, deleted meanwhile", func(d *desk) string {
		d.register("w")
		d.add(d.k.Main, "5-0", "body", "x")
		d.read(d.k.Main, "g", "w", 1)
		d.do("xdel", d.k.Main, "5-0")
		return "5-0"
	}, "in-flight consumer=w due\nConsumer \"w\" was given it at T (just now). Its lease is renewed while it lives; without a heartbeat it ends at T (soon). Its entry is no longer in the stream."},

	{"retrying", func(d *desk) string {
		d.register("w")
		d.add(d.k.Main, "5-0", "body", "x")
		d.read(d.k.Main, "g", "c", 1)
		d.fail("5-0", 2*time.Hour, 5, "boom \x1b]0;x\x07"+strings.Repeat("y", 300))
		return "5-0"
	}, "retrying due id=5-0 entry=m/5-0\nParked after 1 failed attempt (the last: \"boom \\x1b]0;x\\a" + strings.Repeat("y", 189) + "\"…); it is tried again at T (in hours)."},

	{"retrying for the second time", func(d *desk) string {
		d.register("w")
		d.park("r/7-0", 2*time.Hour, "body", "x", "oid", "5-0", "rc", "2", "err", "boom")
		return "5-0"
	}, "retrying due id=5-0 entry=r/7-0\nParked after 2 failed attempts (the last: \"boom\"); it is tried again at T (in hours)."},

	{"retrying, by the id of its last attempt", func(d *desk) string {
		d.park("r/7-0", 2*time.Hour, "body", "x", "oid", "5-0", "rc", "2", "err", "boom")
		return "7-0"
	}, "retrying due id=5-0 entry=r/7-0\nParked after 2 failed attempts (the last: \"boom\"); it is tried again at T (in hours). Nobody reads the group: none was ever seen. Start a worker."},

	{"retrying after lost workers", func(d *desk) string {
		d.register("w")
		d.park("m/5-0", 2*time.Hour, "body", "x", "lost", "2")
		return "5-0"
	}, "retrying due id=5-0 entry=m/5-0\nParked after 2 lost workers in a row; it is tried again at T (in hours)."},

	{"put off", func(d *desk) string {
		d.register("w")
		d.must(d.group().Pause(d.t.Context(), "", 0))
		d.park("m/5-0", 2*time.Hour, "body", "x")
		return "5-0"
	}, "retrying due id=5-0 entry=m/5-0\nPut off by its handler; it is tried again at T (in hours). The group has been paused since T (just now), until somebody resumes it."},

	{"redriven, and due", func(d *desk) string {
		d.register("w")
		d.park("x/9-0", -5*time.Second, "body", "x", "oid", "5-0", "redriven", "1", "err", "boom")
		return "9-0"
	}, "retrying due id=5-0 entry=x/9-0\nRedriven from the dead letters; it is due since T (just now) and goes to the retry stream with the next sweep of a worker."},

	{"due behind many", func(d *desk) string {
		d.register("w")
		d.do("hset", d.k.Meta, "held", "1")
		d.park("x/9-0", -5*time.Second, "body", "x", "oid", "5-0", "redriven", "1")
		return "5-0"
	}, "retrying due id=5-0 entry=x/9-0\nRedriven from the dead letters; it is due since T (just now) and goes to the retry stream when fewer than 1,000 retries wait there."},

	{"delayed", func(d *desk) string {
		d.register("w")
		return d.later(2 * time.Hour)
	}, "delayed due id=<id> entry=<id>\nPublished for later: it goes into the stream at T (in hours)."},

	{"delayed, due, and no worker", func(d *desk) string {
		id := d.later(2 * time.Hour)
		d.do("zadd", d.k.Stream.Due, d.now().Add(-time.Second).UnixMilli(), id)
		return id
	}, "delayed due id=<id> entry=<id>\nPublished for later, and due: it goes into the stream with the next sweep of any worker on it. Nobody reads the group: none was ever seen. Start a worker."},

	{"delayed, no group", func(d *desk) string {
		d.do("hdel", d.k.Groups, "g")
		d.do("xgroup", "destroy", d.k.Main, "g")
		return d.later(2 * time.Hour)
	}, "delayed due id=<id> entry=<id>\nPublished for later: it goes into the stream at T (in hours). The group does not exist, so nothing is kept for it and nobody reads it. Create it at the head of the stream, or start a worker of it."},

	{"done, still in the stream", func(d *desk) string {
		d.add(d.k.Main, "5-0", "body", "x")
		d.read(d.k.Main, "g", "w", 1)
		d.do("xack", d.k.Main, "g", "5-0")
		return "5-0"
	}, "done id=5-0 entry=5-0\nDone: the group was given it, and no copy of it waits, is in flight, parked or dead. It was handled, or purged, or lay before the place where the group began."},

	{"done, marked", func(d *desk) string {
		d.add(d.k.Main, "5-0", "body", "x")
		d.read(d.k.Main, "g", "w", 1)
		d.do("xack", d.k.Main, "g", "5-0")
		d.do("set", d.k.Seen("5-0"), "1")
		d.do("xtrim", d.k.Main, "maxlen", 0)
		return "5-0"
	}, "done\nDone: the group handled it."},

	{"done and trimmed", func(d *desk) string {
		d.add(d.k.Main, "5-0", "body", "x")
		d.read(d.k.Main, "g", "w", 1)
		d.do("xack", d.k.Main, "g", "5-0")
		d.do("xtrim", d.k.Main, "maxlen", 0)
		return "5-0"
	}, "done\nDone, as far as can be told: it is no longer in the stream, the group is past it, and no copy of it waits or is dead. If this is the entry id of a retry or of a dead letter, that entry has moved on: ask with the ID that its publish returned."},

	{"trimmed unread", func(d *desk) string {
		d.add(d.k.Main, "5-0", "body", "x")
		d.add(d.k.Main, "6-0", "body", "x")
		d.do("xtrim", d.k.Main, "maxlen", 1)
		return "5-0"
	}, "unknown\nThe group has not come so far, and the stream has no such entry: it was trimmed or deleted before the group read it, or never was there."},

	{"never was", func(d *desk) string {
		d.add(d.k.Main, "5-0", "body", "x")
		return "99999999999999-0"
	}, "unknown\nNothing has this id: neither the stream nor this group's retries and dead letters."},

	{"nonsense", func(*desk) string {
		return "no such id\x1b"
	}, "unknown\nNothing has this id: neither the stream nor this group's retries and dead letters."},

	{"dead beside another message", func(d *desk) string {
		d.add(d.k.Main, "5-0", "body", "x")
		d.add(d.k.Main, "9-0", "body", "another")
		d.read(d.k.Main, "g", "w", 2)
		d.do("xack", d.k.Main, "g", "5-0", "9-0")
		d.add(d.k.DLQ, "9-0", "body", "x", "oid", "5-0", "rc", "4", "reason", "retries")
		return "9-0"
	}, "done id=9-0 entry=9-0\nDone: the group was given it, and no copy of it waits, is in flight, parked or dead. It was handled, or purged, or lay before the place where the group began. Another message, \"5-0\", is the entry with this id in the dead letters."},
}

// later publishes with a delay.
func (d *desk) later(delay time.Duration) string {
	d.t.Helper()
	id, _, err := lua.Publish(d.t.Context(), d.rdb, d.k.Stream, lua.Publication{Delay: delay, Random: "00", Fields: []string{"body", "x"}})
	d.must(err)
	return id
}

func TestWhy(t *testing.T) {
	t.Parallel()
	for _, c := range whyCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.make("g")
			id := c.make(d)
			d.unchanged("Why", func() {
				d.equal("why "+id, d.why(id), strings.ReplaceAll(c.want, "<id>", id))
			})
		})
	}
}

func TestWhyDead(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	const redrive, bare = ". Redrive it to have it tried again; its entry is ENTRY.", ". It has no body: redrive it with one, or purge it; its entry is ENTRY."
	for reason, c := range map[string]struct {
		fields []string
		want   string
	}{
		"retries":  {[]string{"body", "x", "rc", "4", "err", "boom"}, "its retries are spent, 4 failed attempts (the last: \"boom\")" + redrive},
		"lost":     {[]string{"body", "x", "lost", "3"}, "its workers died or hung with it, 3 times in a row" + redrive},
		"rejected": {[]string{"body", "x", "err", "bad \x1b order"}, "its handler rejected it: \"bad \\x1b order\"" + redrive},
		"no-body":  {[]string{"k", "v"}, "its entry had no body" + bare},
		"expired":  {[]string{"body", "x", "rc", "1", "err", "boom"}, "it was older than ExpireAfter allows when it would have started: \"boom\"" + redrive},
		"overflow": {[]string{"body", "x", "rc", "1", "err", "boom"}, "it failed while as many were parked as MaxParked allows: \"boom\"" + redrive},
		"cut":      {[]string{"body", "x", "cut", "101"}, "shutdowns cut its handler again and again" + redrive},
		"malformed": {
			[]string{"raw", "junk", "member", "m/5-0"},
			"it was parked, and its value could not be read" + bare,
		},
		"too-wide": {[]string{"packed", wire.Pack([]string{"k", "v"})}, "it has too many fields to be retried or handed on" + bare},
		"cosmic":   {[]string{"body", "x", "err", "rays"}, "for the reason \"cosmic\": \"rays\"" + redrive},
	} {
		entry := d.add(d.k.DLQ, "*", append(c.fields, "oid", "5-"+reason, "reason", reason)...)
		want := fmt.Sprintf("dead id=5-%s entry=%s\nDead since T (just now): %s", reason, entry, strings.ReplaceAll(c.want, "ENTRY", entry))
		d.equal(reason, d.why(entry), want)
		d.equal(reason+" by its id", d.why("5-"+reason), want)
	}
}

// The copies are found far into the dead letters, the retry stream and what is parked, also those with ids of a clock that
// was ahead, and those of an entry that was trimmed.
func TestWhyFollowsCopies(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.add(d.k.Main, "7-0", "body", "x")
	d.read(d.k.Main, "g", "w", 1)
	d.do("xack", d.k.Main, "g", "7-0")
	for i := range 1200 {
		d.add(d.k.DLQ, fmt.Sprintf("%d-1", i+1), "body", "x", "oid", fmt.Sprintf("%d-9", 5000-i), "reason", "retries")
	}
	d.add(d.k.DLQ, "2000-1", "body", "x", "oid", "7-0", "reason", "retries", "rc", "1")
	for _, trimmed := range []bool{false, true} {
		w, err := d.group().Why(t.Context(), "7-0")
		d.must(err)
		d.equal("state", w.State+" "+w.Record.EntryID, "dead 2000-1")
		if !trimmed {
			d.do("xtrim", d.k.Main, "maxlen", 0)
		}
	}
	w, err := d.group().Why(t.Context(), "4999-9") // dead before it was published, by the ids
	d.must(err)
	d.equal("state", w.State+" "+w.Record.EntryID, "dead 2-1")
}

func TestWhyErrors(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	_, err := d.group().Why(t.Context(), "5-0")
	d.is(err, xstreamq.ErrNotFound, "s")
	d.make("g")
	_, err = d.admin.Group("s", "a b").Why(t.Context(), "5-0")
	d.is(err, xstreamq.ErrInvalidName)
	d.add(d.k.Main, "5-0", "body", "x")
	d.do("set", d.k.DLQ, "oops")
	_, err = d.group().Why(t.Context(), "5-0")
	if err == nil || !strings.Contains(err.Error(), "why of s/g: key "+d.k.DLQ) {
		t.Errorf("%v", err)
	}
}
