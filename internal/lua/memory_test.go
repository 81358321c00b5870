package lua

import (
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// full makes the bench's server, one of its own, refuse what needs memory, or lifts that.
func (b *bench) full(on bool) {
	b.filled = on
	limit := "0"
	if on {
		limit = "1mb"
	}
	b.do("CONFIG", "SET", "maxmemory", limit)
}

// memoryChecks run one by one on a server that they fill. What drains a full server must go on; what would fill it more
// fails whole and works once there is room.
var memoryChecks = []check{
	{"full: registration and leases", func(b *bench) {
		b.given("main @g: at 0-0\nretry @g: at 0-0\ngroups: g = 0-0|T-9\ngmeta: swept = T-1000\nworkers: c = 1000|T-9000|v|live|")
		b.full(true)
		b.then(b.register("d", time.Second), "true", "+ workers: d = 1000|T|v|live|\n+ gmeta: minvis = 1000\n+ gmeta: maxvis = 1000")
		b.at(5)
		b.then(b.heartbeat("d"), "true", "- workers: d = 1000|T|v|live|\n+ workers: d = 1000|T+5|v|live|")
		b.then(b.arm("d", "8-0"), "true", "- workers: d = 1000|T+5|v|live|\n+ workers: d = 1000|T+5|v|live|8-0")
	}},
	{"full: a tick sweeps, enters and records", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 1-0\nmain @g stray: 1-0\nretry @g: at 0-0\ngroups: g = 0-0|T-9\n" +
			"gmeta: swept = T-700\ngmeta: minvis = 1000\ngmeta: maxvis = 1000\nworkers: c = 1000|T-9000|v|live|\nworkers: d = 1000|T-9|v|live|")
		b.full(true)
		b.then(b.tickAdd("d", Totals{Failed: 3}), "ok ok vis=1s dead=c", `- workers: c = 1000|T-9000|v|live|
			- workers: d = 1000|T-9|v|live|
			- groups: g = 0-0|T-9
			- gmeta: swept = T-700
			+ workers: c = 1000|T-9000|v|dead|
			+ workers: d = 1000|T|v|live|
			+ workers: stray = 1000|T||foreign|
			+ groups: g = 0-18446744073709551615|T-9
			+ gmeta: failed = 3
			+ gmeta: swept = T`)
	}},
	{"full: acks and their markers", func(b *bench) {
		b.given("main: 1-0 body=a\nmain: 2-0 body=b\nmain @g: at 2-0\nmain @g c: 1-0\nretry: 3-0 body=a oid=0-3\nretry @g: at 3-0\nretry @g c: 3-0")
		b.seen = []string{"0-3", "1-0", "2-0"}
		b.full(true)
		ack := func(src, id, stable string) Settlement {
			return Settlement{Verb: Ack, Source: src, EntryID: id, Seen: b.k.Seen(stable), TTL: time.Hour}
		}
		b.then(b.settle("c", ack(Main, "2-0", "2-0")), "lost", "+ seen 2-0 = 1 px")
		b.then(b.settle("c", ack(Main, "1-0", "1-0")), "acked", "- main @g c: 1-0\n+ main @g c:\n+ seen 1-0 = 1 px")
		b.then(b.settle("c", ack(Retry, "3-0", "0-3")), "acked", "- retry: 3-0 body=a oid=0-3\n- retry @g c: 3-0\n+ retry @g c:\n+ seen 0-3 = 1 px")
	}},
	{"full: compaction makes room", func(b *bench) {
		b.given("main: 1-0 body=a\nmain: 2-0 body=b\nmain: 3-0 body=c\nmain @g: at 3-0\nmain @g c: 1-0\ngroups: g = 0-0|T-300000")
		b.full(true)
		b.then(b.compact(false, false), "ok removed=2 floor=1-0 by g", "- main: 2-0 body=b\n- main: 3-0 body=c\n+ meta: compacted = T\n+ meta: cursor = 1-0")
		b.at(1)
		b.then(b.compact(false, false), "ok removed=0 floor=1-0 by g", "- meta: compacted = T\n+ meta: compacted = T+1")
	}},
	{"full: compaction notes that it looked", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 1-0\ngroups: g = 0-0|T-5")
		b.full(true)
		b.then(b.compact(false, false), "young removed=0", "+ meta: compacted = T")
	}},
	{"full: a group can be made", func(b *bench) {
		b.given("main: 1-0 body=a\ngroups: h = x|T-9")
		b.full(true)
		b.then(b.ensure("0", GroupStart, "5000"), "created 0-0",
			"+ main @g: at 0-0\n+ retry @g: at 0-0\n+ groups: g = 0-0|T\n+ meta: format = 1\n+ meta: retain = 5000\n+ meta: by = option")
	}},
	{"full: a group can be removed", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 0-0\nretry: 2-0 body=r\nretry @g: at 0-0\ngroups: g = 0-0|T-9")
		b.full(true)
		b.then(b.drop(true), "removed dead=0 pending=0 retry=1 retrying=0 lag=1",
			"- main @g: at 0-0\n- retry: 2-0 body=r\n- retry @g: at 0-0\n- groups: g = 0-0|T-9\n+ groups: g = x|T")
	}},
	{"full: moves fail whole and work later", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main: 3-0 body=c
			main: 4-0 body=d
			main @g: at 4-0
			main @g c: 1-0 2-0 3-0 4-0
			retry: 5-0 body=r
			retry @g: at 5-0
			retry @g c: 5-0`)
		list := []Settlement{
			{Verb: Fail, Source: Main, EntryID: "1-0", Limit: 5, Delay: time.Second, Error: "e"},
			{Verb: Snooze, Source: Main, EntryID: "2-0", Delay: time.Second},
			{Verb: Release, Source: Main, EntryID: "3-0"},
			{Verb: Bury, Source: Main, EntryID: "4-0", Reason: "rejected", Error: "e"},
			{Verb: Cut, Source: Retry, EntryID: "5-0", Limit: 5},
		}
		b.full(true)
		got := b.settle("c", list...)
		if strings.Count(got, "error OOM") != 5 {
			b.failf("reply %s", got)
		}
		b.then("", "", "")
		b.full(false)
		b.then(b.settle("c", list...), "parked m/1-0 ; parked m/2-0 ; released ; dead rejected * ; released", `- main @g c: 1-0 2-0 3-0 4-0
			- retry: 5-0 body=r
			- retry @g c: 5-0
			+ main @g c:
			+ retry: * body=c oid=3-0
			+ retry: * body=r cut=1 oid=5-0
			+ retry @g c:
			+ dlq: * body=d oid=4-0 err=e reason=rejected
			+ due: m/1-0 = T+1000
			+ due: m/2-0 = T+1000
			+ parked: m/1-0 = body=a rc=1 oid=1-0 err=e
			+ parked: m/2-0 = body=b oid=2-0`)
	}},
	{"full: sweeps that move fail whole and work later", func(b *bench) {
		b.given(`main: 1-0 body=a
			main @g: at 1-0
			main @g c: 1-0
			retry @g: at 0-0
			workers: c = 1000|T|v|dead|
			parked: m/9-0 = body=p
			due: m/9-0 = T
			dlq: 7-0 body=d
			groups: g = 0-0|T`)
		b.sent = []string{"k"}
		calls := []struct {
			call func() string
			then string
		}{
			{func() string { return b.reclaim("c", 3) }, "moved=1"},
			{func() string { return b.promote(false) }, "moved=1"},
			{func() string { return b.redrive(false, nil, Letter{EntryID: "7-0", ID: "7-0"}) }, "moved x/7-0"},
			{func() string {
				return b.publish(Publication{Delay: time.Hour, Random: "ab", Fields: []string{"body", "x"}})
			}, "d-T-ab"},
			{func() string {
				return b.publish(Publication{DedupeID: "k", Window: time.Hour, Fields: []string{"body", "x"}})
			}, "*"},
		}
		b.full(true)
		for _, c := range calls {
			if got := c.call(); !strings.Contains(got, "OOM") {
				b.failf("reply %s, want OOM", got)
			}
			b.then("", "", "")
		}
		b.full(false)
		for _, c := range calls {
			b.equal("with room", c.call(), c.then)
		}
	}},
}

// memoryMutants fail these checks, each for want of a first write that a full memory allows.
var memoryMutants = []mutant{
	{"registration needs memory", "full: registration and leases", []patch{{"register", `unlock(KEYS[1])`, ``}}},
	{"heartbeat needs memory", "full: registration and leases", []patch{{"heartbeat", `unlock(KEYS[1])`, ``}}},
	{"suspect needs memory", "full: registration and leases", []patch{{"arm", `unlock(KEYS[1])`, ``}}},
	{"sweep needs memory", "full: a tick sweeps, enters and records", []patch{{"tick", `unlock(KEYS[3])`, ``}}},
	{"marker needs memory", "full: acks and their markers", []patch{{"settle", `redis.call('XACK', k.m, group, '0-0')`, ``}}},
	{"group needs memory", "full: a group can be made", []patch{{"group", `unlock(KEYS[4])`, ``}}},
	{"removal needs memory", "full: a group can be removed", []patch{{"drop", `unlock(KEYS[6])`, ``}}},
	{"compaction marks first", "full: compaction makes room", []patch{{
		"compact", `  local removed = redis.call('XTRIM'`, `  redis.call('HSET', KEYS[3], 'compacted', int(t))
  local removed = redis.call('XTRIM'`,
	}}},
}

func TestMemoryFull(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--maxmemory-policy", "noeviction")
	c := s.Client(t)
	filler := strings.Repeat("x", 2<<20) // used memory is over the limit of 1 MB from the start
	if err := c.Set(t.Context(), "filler", filler, 0).Err(); err != nil {
		t.Fatal(err)
	}
	bench := func(t *testing.T, patches ...patch) *bench {
		t.Helper()
		b := newBench(t, patches...)
		b.c, b.r = c, swap{c, b.r.(swap).by}
		b.k = keys.NewStream(redistest.Prefix(t), "s").Group("g")
		b.full(false)
		b.at(0)
		return b
	}
	// Not in parallel: they fill one server.
	for _, ch := range memoryChecks {
		t.Run(ch.name, func(t *testing.T) {
			for _, f := range bench(t).holds(ch) {
				t.Error(f)
			}
		})
	}
	for _, m := range memoryMutants {
		t.Run(m.name, func(t *testing.T) {
			for _, ch := range memoryChecks {
				if ch.name == m.caught {
					caughtBy(t, ch, bench(t, m.patches...))
					return
				}
			}
			t.Errorf("no check is named %q", m.caught)
		})
	}
}
