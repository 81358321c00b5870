package lua

import (
	"fmt"
	"strings"
	"time"
)

// reclaim makes the next step of a walk over what owner holds; a new walk begins when the one before has ended.
func (b *bench) reclaim(owner string, maxLost int) string {
	got, err := Reclaim(b.ctx, b.r, b.k, owner, b.from, maxLost, time.Second, time.Minute)
	b.must(err)
	b.from = got.Next
	out := []string{fmt.Sprint("moved=", got.Moved)}
	if got.Next != "" {
		out[0] += " more"
	}
	for _, id := range got.Deleted {
		out = append(out, "deleted "+id)
	}
	for _, d := range got.Dead {
		out = append(out, "dead "+d.Reason+" "+d.DeadID+" "+d.Source)
	}
	for _, e := range got.Errors {
		out = append(out, "error "+e)
	}
	return moments(strings.Join(out, " ; "))
}

// dues takes the due times out of the state, where chance set them, and holds each against a longest delay.
func (b *bench) dues(now int64, most map[string]int64) {
	for member, delay := range most {
		score := int64(b.c.ZScore(b.ctx, b.k.Due, member).Val()) - epoch - now
		if score < 0 || score > delay {
			b.failf("%s is due in %d ms, want 0 to %d", member, score, delay)
		}
		b.do("ZADD", b.k.Due, "XX", epoch+now, member)
	}
}

var reclaimChecks = []check{
	{"reclaim: a live owner keeps all", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main: 3-0 body=c
			main @g: at 3-0
			main @g c: 1-0
			main @g strange: 2-0
			main @g missing: 3-0
			workers: c = 1000|T-999999|v|live|
			workers: strange = 1000|T-999999||foreign|`)
		for _, owner := range []string{"c", "strange", "missing"} {
			b.then(b.reclaim(owner, 3), "moved=0", "")
		}
	}},
	{"reclaim: to the retry stream, counted as lost", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main: 3-0 body=c
			main @g: at 3-0
			main @g c: 1-0 3-0
			main @g d: 2-0
			retry: 7-0 body=r x=y rc=2 losses=4 oid=0-1 err=e
			retry: 8-0 body=s
			retry @g: at 8-0
			retry @g c: 7-0
			retry @g d: 8-0
			workers: c = 1000|T|v|dead|`)
		b.then(b.reclaim("c", 3), "moved=3", `- main @g c: 1-0 3-0
			- retry: 7-0 body=r x=y rc=2 losses=4 oid=0-1 err=e
			- retry @g c: 7-0
			+ main @g c:
			+ retry: * body=a lost=1 losses=1 oid=1-0
			+ retry: * body=c lost=1 losses=1 oid=3-0
			+ retry: * body=r x=y rc=2 err=e lost=1 losses=5 oid=0-1
			+ retry @g c:`)
		b.then(b.reclaim("c", 3), "moved=0", "")
	}},
	{"reclaim: suspects are parked apart", func(b *bench) {
		b.given(`main: 1-0 body=a
			main @g: at 1-0
			main @g c: 1-0
			retry: 5-0 body=a lost=1 losses=1 oid=0-5
			retry: 6-0 body=b lost=2 losses=7 oid=0-6
			retry: 7-0 body=c lost=5 losses=9 oid=0-7
			retry @g: at 7-0
			retry @g c: 5-0 6-0 7-0
			workers: c = 1000|T|v|dead|`)
		got := b.reclaim("c", 100)
		b.dues(0, map[string]int64{"r/5-0": 1000, "r/6-0": 1000, "r/7-0": 8000})
		b.then(got, "moved=4", `- main @g c: 1-0
			- retry: 5-0 body=a lost=1 losses=1 oid=0-5
			- retry: 6-0 body=b lost=2 losses=7 oid=0-6
			- retry: 7-0 body=c lost=5 losses=9 oid=0-7
			- retry @g c: 5-0 6-0 7-0
			+ main @g c:
			+ retry: * body=a lost=1 losses=1 oid=1-0
			+ retry @g c:
			+ due: r/5-0 = T
			+ due: r/6-0 = T
			+ due: r/7-0 = T
			+ parked: r/5-0 = body=a lost=2 losses=2 oid=0-5
			+ parked: r/6-0 = body=b lost=2 losses=8 oid=0-6
			+ parked: r/7-0 = body=c lost=5 losses=10 oid=0-7`)
	}},
	{"reclaim: only the suspect that ran alone is counted", func(b *bench) {
		b.given(`retry: 5-0 body=a lost=2 losses=2 oid=0-5
			retry: 6-0 body=b lost=2 losses=2 oid=0-6
			retry @g: at 6-0
			retry @g c: 5-0 6-0
			main: 6-0 body=m lost=2 losses=2
			main @g: at 6-0
			main @g c: 6-0
			workers: c = 1000|T|v|dead|6-0`)
		got := b.reclaim("c", 3)
		b.dues(0, map[string]int64{"r/5-0": 1000, "r/6-0": 2000, "m/6-0": 1000})
		b.then(got, "moved=3", `- retry: 5-0 body=a lost=2 losses=2 oid=0-5
			- retry: 6-0 body=b lost=2 losses=2 oid=0-6
			- retry @g c: 5-0 6-0
			- main @g c: 6-0
			+ main @g c:
			+ retry @g c:
			+ due: r/5-0 = T
			+ due: r/6-0 = T
			+ due: m/6-0 = T
			+ parked: r/5-0 = body=a lost=2 losses=3 oid=0-5
			+ parked: r/6-0 = body=b lost=3 losses=3 oid=0-6
			+ parked: m/6-0 = body=m lost=2 losses=3 oid=6-0`)
	}},
	{"reclaim: lost too often in a row", func(b *bench) {
		b.given(`retry: 5-0 body=a lost=3 losses=8 oid=0-5 rc=1
			retry: 6-0 body=b lost=2 losses=2 oid=0-6
			retry @g: at 6-0
			retry @g c: 5-0 6-0
			workers: c = 1000|T|v|dead|5-0`)
		got := b.reclaim("c", 3)
		b.dues(0, map[string]int64{"r/6-0": 1000})
		b.then(got, "moved=2 ; dead lost * 5-0", `- retry: 5-0 body=a lost=3 losses=8 oid=0-5 rc=1
			- retry: 6-0 body=b lost=2 losses=2 oid=0-6
			- retry @g c: 5-0 6-0
			+ retry @g c:
			+ dlq: * body=a rc=1 lost=4 losses=9 oid=0-5 reason=lost
			+ due: r/6-0 = T
			+ parked: r/6-0 = body=b lost=2 losses=3 oid=0-6`)
	}},
	{"reclaim: no lost lease is survived when none may be", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 1-0\nmain @g c: 1-0\nworkers: c = 1000|T|v|dead|")
		b.then(b.reclaim("c", 0), "moved=1 ; dead lost * 1-0", `- main @g c: 1-0
			+ main @g c:
			+ dlq: * body=a lost=1 losses=1 oid=1-0 reason=lost`)
	}},
	{"reclaim: junk counters", func(b *bench) {
		b.given(`main: 1-0 body=a lost=nan losses=1e9
			main: 2-0 body=b lost=-1 losses=1234567890
			main: 3-0 body=c lost="" losses=999999999
			main @g: at 3-0
			main @g c: 1-0 2-0 3-0
			workers: c = 1000|T|v|dead|`)
		b.then(b.reclaim("c", 3), "moved=3", `- main @g c: 1-0 2-0 3-0
			+ main @g c:
			+ retry: * body=a lost=1 losses=1 oid=1-0
			+ retry: * body=b lost=1 losses=1 oid=2-0
			+ retry: * body=c lost=1 losses=999999999 oid=3-0`)
	}},
	{"reclaim: deleted entries are counted, not lost silently", func(b *bench) {
		b.given(`main: 1-0 !
			main: 2-0 body=b
			main @g: at 2-0
			main @g c: 1-0 2-0
			retry: 3-0 !
			retry @g: at 3-0
			retry @g c: 3-0
			workers: c = 1000|T|v|dead|`)
		b.then(b.reclaim("c", 3), "moved=1 ; deleted 1-0 ; deleted 3-0", `- main @g c: 1-0 2-0
			- retry @g c: 3-0
			+ main @g c:
			+ retry @g c:
			+ retry: * body=b lost=1 losses=1 oid=2-0`)
	}},
	{"reclaim: one that cannot be moved does not stop those behind it", func(b *bench) {
		b.given(`main: 1-0 body=a lost=9
			main: 2-0 body=b
			main @g: at 2-0
			main @g c: 1-0 2-0
			workers: c = 1000|T|v|dead|
			dlq = oops`)
		b.then(b.reclaim("c", 3), "moved=1 ; error WRONGTYPE Operation against a key holding the wrong kind of value (XADD "+b.k.DLQ+")",
			`- main @g c: 1-0 2-0
			+ main @g c: 1-0
			+ retry: * body=b lost=1 losses=1 oid=2-0`)
		b.then(b.reclaim("c", 3), "moved=0 ; error WRONGTYPE Operation against a key holding the wrong kind of value (XADD "+b.k.DLQ+")", "")
		b.do("DEL", b.k.DLQ)
		b.last = b.state()
		b.then(b.reclaim("c", 3), "moved=1 ; dead lost * 1-0", `- main @g c: 1-0
			+ main @g c:
			+ dlq: * body=a lost=9 losses=1 oid=1-0 reason=lost`)
	}},
	{"reclaim: hundreds that cannot be moved do not stop those behind", func(b *bench) {
		b.given("main @g: at 0-0\nretry @g: at 0-0\nworkers: c = 1000|T|v|dead|\ndlq = oops")
		fill := func(key string, bad, good int) {
			for i := range bad + good {
				b.add(key, fmt.Sprintf("%d-0", i+1), "body", "a", "lost", []string{"9", "0"}[min(1, i/bad)])
			}
		}
		fill(b.k.Main, 250, 3)
		fill(b.k.Retry, 120, 2)
		b.do("XREADGROUP", "GROUP", "g", "c", "COUNT", 1000, "STREAMS", b.k.Main, b.k.Retry, ">", ">")
		walk := func(steps ...string) {
			b.equal("begins", b.from, "")
			for i, want := range steps {
				moved, errors, _ := strings.Cut(b.reclaim("c", 3), " ; ")
				b.equal(fmt.Sprint("step ", i), fmt.Sprint(moved, " errors=", strings.Count(errors, "error WRONGTYPE")), want)
			}
			b.equal("ended", b.from, "")
		}
		walk("moved=0 more errors=100", "moved=0 more errors=100", "moved=3 more errors=97", "moved=2 errors=73")
		b.equal("held", b.remove("c"), "370")
		walk("moved=0 more errors=100", "moved=0 more errors=100", "moved=0 more errors=100", "moved=0 errors=70")
		b.do("DEL", b.k.DLQ)
		for _, want := range []string{"moved=100 more", "moved=100 more", "moved=100 more", "moved=70"} {
			moved, _, _ := strings.Cut(b.reclaim("c", 3), " ; ")
			b.equal("mended", moved, want)
		}
		b.equal("dead", b.c.XLen(b.ctx, b.k.DLQ).Val(), 370)
		b.equal("held", b.remove("c"), "0")
	}},
	{"reclaim: goes on where it stopped, also where that is gone", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main @g: at 2-0
			main @g c: 1-0 2-0
			retry: 3-0 body=c
			retry: 4-0 body=d
			retry @g: at 4-0
			retry @g c: 3-0 4-0
			workers: c = 1000|T|v|dead|`)
		b.from = "r/3-1"
		b.then(b.reclaim("c", 3), "moved=1", "- retry: 4-0 body=d\n- retry @g c: 3-0 4-0\n+ retry @g c: 3-0\n+ retry: * body=d lost=1 losses=1 oid=4-0")
		b.from = "m/1-1"
		b.then(b.reclaim("c", 3), "moved=2", `- main @g c: 1-0 2-0
			- retry: 3-0 body=c
			- retry @g c: 3-0
			+ main @g c: 1-0
			+ retry @g c:
			+ retry: * body=b lost=1 losses=1 oid=2-0
			+ retry: * body=c lost=1 losses=1 oid=3-0`)
	}},
	{"reclaim: counters stop at nine digits", func(b *bench) {
		b.given(`main: 1-0 body=a lost=999999999 losses=999999999
			retry: 2-0 body=b lost=999999999 losses=999999998
			retry @g: at 2-0
			retry @g c: 2-0
			main @g: at 1-0
			main @g c: 1-0
			workers: c = 1000|T|v|dead|2-0`)
		b.then(b.reclaim("c", 3), "moved=2 ; dead lost * 1-0 ; dead lost * 2-0", `- main @g c: 1-0
			- retry: 2-0 body=b lost=999999999 losses=999999998
			- retry @g c: 2-0
			+ main @g c:
			+ retry @g c:
			+ dlq: * body=a lost=999999999 losses=999999999 oid=1-0 reason=lost
			+ dlq: * body=b lost=999999999 losses=999999999 oid=2-0 reason=lost`)
	}},
	{"reclaim: no group in one of the streams", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 1-0\nmain @g c: 1-0\nworkers: c = 1000|T|v|dead|")
		b.then(b.reclaim("c", 3), "moved=1", "- main @g c: 1-0\n+ main @g c:\n+ retry: * body=a lost=1 losses=1 oid=1-0")
		b.given("retry @g: at 0-0\nretry @g c:")
		b.do("DEL", b.k.Main)
		b.last = b.state()
		b.then(b.reclaim("c", 3), "moved=0", "")
	}},
	{"reclaim: a stream of the wrong type", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 1-0\nmain @g c: 1-0\nworkers: c = 1000|T|v|dead|\nretry = oops")
		_, err := Reclaim(b.ctx, b.r, b.k, "c", "", 3, time.Second, time.Minute)
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			b.failf("error %v, want WRONGTYPE", err)
		}
		b.then("", "", "")
	}},
	{"reclaim: bounded in entries", func(b *bench) {
		b.given("main @g: at 0-0\nretry @g: at 0-0\nworkers: c = 1000|T|v|dead|")
		for range 130 {
			b.add(b.k.Main, "*", "body", "a")
		}
		for range 90 {
			b.add(b.k.Retry, "*", "body", "a")
		}
		b.do("XREADGROUP", "GROUP", "g", "c", "COUNT", 1000, "STREAMS", b.k.Main, b.k.Retry, ">", ">")
		b.equal("first", b.reclaim("c", 3), "moved=100 more")
		b.equal("second", b.reclaim("c", 3), "moved=100 more")
		b.equal("third", b.reclaim("c", 3), "moved=20")
		b.equal("waiting", b.c.XLen(b.ctx, b.k.Retry).Val(), 220)
		b.equal("then", b.remove("c"), "0")
	}},
	{"reclaim: bounded in bytes, at least one entry", func(b *bench) {
		b.given("main @g: at 0-0\nworkers: c = 1000|T|v|dead|")
		big := strings.Repeat("x", 1<<20)
		for range 3 {
			b.add(b.k.Main, "*", "body", big)
		}
		for range 4 {
			b.add(b.k.Main, "*", "body", big[:100<<10])
		}
		b.do("XREADGROUP", "GROUP", "g", "c", "COUNT", 1000, "STREAMS", b.k.Main, ">")
		for i, want := range []string{"moved=1 more", "moved=1 more", "moved=1 more", "moved=3 more", "moved=1"} {
			b.equal(fmt.Sprint("step ", i), b.reclaim("c", 3), want)
		}
		b.equal("waiting", b.c.XLen(b.ctx, b.k.Retry).Val(), 7)
	}},
	{"reclaim: one dead owner after another, its neighbour untouched", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main @g: at 2-0
			main @g c: 1-0
			main @g d: 2-0
			retry @g: at 0-0
			workers: c = 1000|T-5000|v|live|
			workers: d = 60000|T-5000|v|live|
			groups: g = 0-18446744073709551615|T-9
			gmeta: swept = T-250
			gmeta: minvis = 1000`)
		b.then(b.tick(""), "none ok vis=1s dead=c",
			"- workers: c = 1000|T-5000|v|live|\n- gmeta: swept = T-250\n+ workers: c = 1000|T-5000|v|dead|\n+ gmeta: swept = T")
		b.then(b.heartbeat("c"), "false", "")
		b.then(b.reclaim("d", 3), "moved=0", "")
		b.then(b.remove("c"), "1", "")
		b.then(b.reclaim("c", 3), "moved=1", "- main @g c: 1-0\n+ main @g c:\n+ retry: * body=a lost=1 losses=1 oid=1-0")
		b.then(b.settle("c", Settlement{Verb: Ack, Source: Main, EntryID: "1-0"}), "lost", "")
		b.then(b.remove("c"), "0", "- main @g c:\n- workers: c = 1000|T-5000|v|dead|")
	}},
}
