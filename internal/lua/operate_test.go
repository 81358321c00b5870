package lua

import (
	"fmt"
	"strings"
)

func (b *bench) drop(force bool) string {
	d, err := Drop(b.ctx, b.r, b.k, force)
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprintf("%s dead=%d pending=%d retry=%d retrying=%d lag=%d", d.What, d.Dead, d.Pending, d.Retry, d.Retrying, d.Lag)
}

func (b *bench) seek(to string) string {
	what, position, err := Seek(b.ctx, b.r, b.k, to)
	if err != nil {
		return "error " + err.Error()
	}
	return strings.TrimSpace(what + " " + position)
}

func (b *bench) count(after, to string, most int) string {
	c, err := Count(b.ctx, b.r, b.k.Main, after, to, most)
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprintf("%d %s..%s %v", c.N, c.First, c.Last, c.Through)
}

// idle is a group with nothing in it, but all of its keys.
const idle = `main: 1-0 body=a
	main @g: at 1-0
	main @h: at 0-0
	retry @g: at 0-0
	groups: g = 1-0|T-9
	groups: h = 0-0|T-9
	workers: c = 1000|T|v|live|
	gmeta: swept = T
	paused = why
	meta: format = 1
`

const idleGone = `- main @g: at 1-0
	- retry @g: at 0-0
	- groups: g = 1-0|T-9
	- workers: c = 1000|T|v|live|
	- gmeta: swept = T
	- paused = why
	+ groups: g = x|T
`

var operateChecks = []check{
	{"drop: holds nothing", func(b *bench) {
		b.given(idle)
		b.then(b.drop(false), "removed dead=0 pending=0 retry=0 retrying=0 lag=0", idleGone)
		b.then(b.drop(true), "missing dead=0 pending=0 retry=0 retrying=0 lag=0", "")
	}},
	{"drop: each thing it holds is a reason not to, but for force", func(b *bench) {
		for _, h := range []struct{ given, reply, gone string }{
			{"retry: 1-0 body=x", "dead=0 pending=0 retry=1 retrying=0 lag=0", "- retry: 1-0 body=x"},
			{"main @g c: 1-0", "dead=0 pending=1 retry=0 retrying=0 lag=0", "- main @g c: 1-0"},
			{"main: 2-0 body=b", "dead=0 pending=0 retry=0 retrying=0 lag=1", ""},
			{"parked: m/1-0 = body=a\ndue: m/1-0 = T", "dead=0 pending=0 retry=0 retrying=1 lag=0", "- parked: m/1-0 = body=a\n- due: m/1-0 = T"},
		} {
			b.do("DEL", b.k.Main, b.k.Retry, b.k.Groups, b.k.Workers, b.k.Meta, b.k.Paused, b.k.Stream.Meta)
			b.given(idle + h.given)
			b.then(b.drop(false), "held "+h.reply, "")
			b.then(b.drop(true), "removed "+h.reply, idleGone+h.gone)
		}
	}},
	{"drop: never while it has dead letters", func(b *bench) {
		b.given(idle + "dlq: 1-0 body=d")
		b.then(b.drop(true), "held dead=1 pending=0 retry=0 retrying=0 lag=0", "")
		b.do("DEL", b.k.Main, b.k.Groups)
		b.last = b.state()
		b.then(b.drop(true), "held dead=1 pending=0 retry=0 retrying=0 lag=0", "")
	}},
	{"drop: a group that vanished leaves a tombstone too", func(b *bench) {
		b.given("groups: g = 1-0|T-9\nmain: 1-0 body=a\nmain @h: at 0-0")
		b.then(b.drop(false), "removed dead=0 pending=0 retry=0 retrying=0 lag=0", "- groups: g = 1-0|T-9\n+ groups: g = x|T")
	}},
	{"drop: a group that nobody recorded", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 1-0")
		b.then(b.drop(false), "removed dead=0 pending=0 retry=0 retrying=0 lag=0", "- main @g: at 1-0\n+ groups: g = x|T")
	}},
	{"drop: missing", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @h: at 0-0")
		b.then(b.drop(true), "missing dead=0 pending=0 retry=0 retrying=0 lag=0", "")
	}},
	{"drop: dead letters of the wrong type", func(b *bench) {
		b.given(idle + "dlq = oops")
		if got := b.drop(true); !strings.Contains(got, "WRONGTYPE") {
			b.failf("%s", got)
		}
		b.then("", "", "")
	}},
	{"seek: head, tail, behind an id", func(b *bench) {
		b.given("main: 5-0 body=a\nmain: 6-0 body=b\nmain: 7-0 body=c\nmain @g: at 6-0\nmain @h: at 5-0\ngroups: g = 6-0|T-9\nseen 5-0 = 1\nretry: 3-0 body=r\nretry @g: at 3-0\nretry @g c: 3-0")
		b.then(b.seek("0"), "moved 0-0", "- main @g: at 6-0\n- groups: g = 6-0|T-9\n+ main @g: at 0-0\n+ groups: g = 0-0|T-9")
		b.then(b.seek("$"), "moved 7-0", "- main @g: at 0-0\n- groups: g = 0-0|T-9\n+ main @g: at 7-0\n+ groups: g = 7-0|T-9")
		b.then(b.seek("5-0"), "moved 5-0", "- main @g: at 7-0\n- groups: g = 7-0|T-9\n+ main @g: at 5-0\n+ groups: g = 5-0|T-9")
		b.then(b.seek("4-18446744073709551615"), "moved 4-18446744073709551615",
			"- main @g: at 5-0\n- groups: g = 5-0|T-9\n+ main @g: at 4-18446744073709551615\n+ groups: g = 4-18446744073709551615|T-9")
		b.then(b.seek("1-0"), "moved 1-0",
			"- main @g: at 4-18446744073709551615\n- groups: g = 4-18446744073709551615|T-9\n+ main @g: at 1-0\n+ groups: g = 1-0|T-9")
	}},
	{"seek: a group that nobody recorded", func(b *bench) {
		b.given("main: 5-0 body=a\nmain @g: at 0-0")
		b.then(b.seek("$"), "moved 5-0", "- main @g: at 0-0\n+ main @g: at 5-0\n+ groups: g = 5-0|T")
	}},
	{"seek: refused while entries are pending", func(b *bench) {
		b.given("main: 5-0 body=a\nmain: 6-0 body=b\nmain @g: at 5-0\nmain @g c: 5-0\ngroups: g = 4-0|T-9")
		for _, to := range []string{"0", "$", "5-0"} {
			b.then(b.seek(to), "pending", "")
		}
	}},
	{"seek: no group, no stream", func(b *bench) {
		b.given("main: 5-0 body=a\nmain @h: at 5-0")
		b.then(b.seek("0"), "missing", "")
		b.do("DEL", b.k.Main)
		b.last = b.state()
		b.then(b.seek("0"), "missing", "")
	}},
	{"seek: history that is gone", func(b *bench) {
		b.given("main: 5-0 body=a\nmain: 6-0 body=b\nmain: 7-0 body=c\nmain: 8-0 body=d\nmain @g: at 8-0\ngroups: g = 8-0|T-9")
		b.do("XTRIM", b.k.Main, "MINID", "7-0")
		b.last = b.state()
		b.then(b.seek("5-0"), "trimmed 7-0", "")
		b.then(b.seek("6-0"), "trimmed 7-0", "")
		b.then(b.seek("6-18446744073709551615"), "moved 6-18446744073709551615",
			"- main @g: at 8-0\n- groups: g = 8-0|T-9\n+ main @g: at 6-18446744073709551615\n+ groups: g = 6-18446744073709551615|T-9")
		b.do("XTRIM", b.k.Main, "MAXLEN", 0)
		b.last = b.state()
		b.then(b.seek("7-0"), "trimmed", "")
		b.then(b.seek("8-0"), "moved 8-0", "- main @g: at 6-18446744073709551615\n- groups: g = 6-18446744073709551615|T-9\n+ main @g: at 8-0\n+ groups: g = 8-0|T-9")
	}},
	{"lag: counts what lies after an id", func(b *bench) {
		b.given("main: 5-0 body=a\nmain: 6-0 body=b\nmain: 6-1 body=c\nmain: 9007199254740993-0 body=d")
		for _, c := range []struct {
			after, want string
		}{
			{"0-0", "4 5-0..9007199254740993-0 true"},
			{"5-0", "3 6-0..9007199254740993-0 true"},
			{"6-0", "2 6-1..9007199254740993-0 true"},
			{"9007199254740992-18446744073709551615", "1 9007199254740993-0..9007199254740993-0 true"},
			{"9007199254740993-0", "0 ..9007199254740993-0 true"},
		} {
			b.then(b.count(c.after, "+", 1000), c.want, "")
		}
		b.then(b.count("0-0", "+", 3), "3 5-0..6-1 false", "")
		b.then(b.count("6-1", "+", 3), "1 9007199254740993-0..9007199254740993-0 true", "")
		b.then(b.count("0-0", "6-1", 1000), "3 5-0..6-1 true", "")
		b.then(b.count("5-0", "(6-1", 1000), "1 6-0..6-0 true", "")
		b.then(b.count("5-0", "(6-0", 1000), "0 ..5-0 true", "")
		b.do("DEL", b.k.Main)
		b.equal("no stream", b.count("5-0", "+", 1000), "0 ..5-0 true")
	}},
	{"lag: bounded in bytes", func(b *bench) {
		b.given("")
		for range 6 {
			b.add(b.k.Main, "*", "body", strings.Repeat("x", 1<<20))
		}
		c, err := Count(b.ctx, b.r, b.k.Main, "0-0", "+", 1000)
		b.must(err)
		if c.N > 2 || c.Through {
			b.failf("%d entries of 1 MiB in one step, through %v", c.N, c.Through)
		}
		total := c.N
		for !c.Through {
			c, err = Count(b.ctx, b.r, b.k.Main, c.Last, "+", 1000)
			b.must(err)
			total += c.N
		}
		b.equal("in all", total, 6)
	}},
	{"lag: the wrong type", func(b *bench) {
		b.given("main = oops")
		if got := b.count("0-0", "+", 10); !strings.Contains(got, "WRONGTYPE") {
			b.failf("%s", got)
		}
	}},
}

// idChecks: ids are decimal strings of up to twenty digits each; as numbers, neighbours beyond 2^53 are one.
var idChecks = []check{
	{"ids: the floor between neighbours beyond 2^53", func(b *bench) {
		b.given(`main: 9007199254740992-0 body=a
			main: 9007199254740993-0 body=b
			main: 9007199254740993-1 body=c
			main: 9007199254740994-0 body=d
			main @g: at 9007199254740994-0
			main @g c: 9007199254740993-1
			main @h: at 9007199254740993-0
			groups: g = 0-0|T-300000`)
		b.then(b.compact(false, false), "ok removed=2 floor=9007199254740993-1 by g,h",
			"- main: 9007199254740992-0 body=a\n- main: 9007199254740993-0 body=b\n+ meta: compacted = T")
	}},
	{"ids: two that are one as numbers", func(b *bench) {
		b.given(`main: 9007199254740992-5 body=a
			main: 9007199254740992-7 body=b
			main: 9007199254740993-0 body=c
			main @g: at 9007199254740992-5
			main @h: at 9007199254740993-0
			groups: g = 0-0|T-300000`)
		b.then(b.compact(false, false), "ok removed=1 floor=9007199254740992-6 by g", "- main: 9007199254740992-5 body=a\n+ meta: compacted = T")
	}},
	{"ids: the floor at the end of all ids", func(b *bench) {
		b.given(`main: 18446744073709551614-18446744073709551615 body=a
			main: 18446744073709551615-0 body=b
			main: 18446744073709551615-18446744073709551614 body=c
			main @g: at 18446744073709551614-18446744073709551615
			groups: g = 0-0|T-300000`)
		b.then(b.compact(false, false), "ok removed=1 floor=18446744073709551615-0 by g",
			"- main: 18446744073709551614-18446744073709551615 body=a\n+ meta: compacted = T")
		b.do("XGROUP", "SETID", b.k.Main, "g", "18446744073709551615-18446744073709551614")
		b.last = b.state()
		b.then(b.compact(false, false), "ok removed=2 floor=18446744073709551615-18446744073709551615 by g",
			"- main: 18446744073709551615-0 body=b\n- main: 18446744073709551615-18446744073709551614 body=c")
	}},
	{"ids: nothing is behind the last possible one", func(b *bench) {
		const last = "18446744073709551615-18446744073709551615"
		read := fmt.Sprintf("main: 5-0 body=a\nmain: %s body=z\nmain @g: at %s\nretry @g: at 0-0\ngroups: g = 5-0|T-300000\n", last, last)
		b.given(read)
		b.equal("unread", b.count(last, "+", 1000), "0 .."+last+" true")
		b.equal("unread in steps of one", b.count("5-0", "+", 1), "1 "+last+".."+last+" true")
		b.then(b.compact(true, false), "ok removed=0 floor="+last+" more by g", "")
		b.then(b.compact(false, false), "ok removed=1 floor="+last+" by g", "- main: 5-0 body=a\n+ meta: compacted = T")
		b.then(b.compact(false, false), "ok removed=0 floor="+last+" by g", "")
		b.then(b.tick(""), "none ok compacted=T+0", fmt.Sprintf("- groups: g = 5-0|T-300000\n+ groups: g = %s|T-300000\n+ gmeta: swept = T", last))
		b.then(b.seek("5-0"), "trimmed "+last, "")
		b.then(b.seek("0"), "moved 0-0", fmt.Sprintf("- main @g: at %s\n+ main @g: at 0-0\n- groups: g = %s|T-300000\n+ groups: g = 0-0|T-300000", last, last))
		b.then(b.seek(last), "moved "+last, fmt.Sprintf("+ main @g: at %s\n- main @g: at 0-0\n+ groups: g = %s|T-300000\n- groups: g = 0-0|T-300000", last, last))
		gone := fmt.Sprintf("- main @g: at %s\n- retry @g: at 0-0\n- groups: g = %s|T-300000\n- gmeta: swept = T\n+ groups: g = x|T", last, last)
		b.then(b.drop(false), "removed dead=0 pending=0 retry=0 retrying=0 lag=0", gone)

		b.do("DEL", b.k.Main, b.k.Groups, b.k.Stream.Meta)
		b.given(read + fmt.Sprintf("main @g c: 5-0 %s\nworkers: c = 1000|T|v|dead|", last))
		b.then(b.compact(false, false), "ok removed=0 floor=5-0 by g", "+ meta: compacted = T\n+ meta: cursor = 5-0")
		b.then(b.tick(""), "none ok compacted=T+0 dead=c", "- groups: g = 5-0|T-300000\n+ groups: g = 4-18446744073709551615|T-300000\n+ gmeta: swept = T")
		b.then(b.reclaim("c", 3), "moved=2", fmt.Sprintf(`- main @g c: 5-0 %s
			+ main @g c:
			+ retry: * body=a lost=1 losses=1 oid=5-0
			+ retry: * body=z lost=1 losses=1 oid=%s`, last, last))
		b.then(b.drop(false), "held dead=0 pending=0 retry=2 retrying=0 lag=0", "")
		got := b.drop(true)
		b.equal("forced", got, "removed dead=0 pending=0 retry=2 retrying=0 lag=0")
	}},
	{"walks: bounded in bytes behind small ones", func(b *bench) {
		const small, large = 100, 40
		for i := range small + large {
			body := "x"
			if i >= small {
				body = strings.Repeat("x", 64<<10)
			}
			b.add(b.k.Main, fmt.Sprintf("%d-0", i+1), "body", body)
		}
		c, err := Count(b.ctx, b.r, b.k.Main, "0-0", "+", 1000)
		b.must(err)
		if c.N < small || c.N > small+8 || c.Through {
			b.failf("counted %d in one script, want all %d small ones and at most 8 large", c.N, small)
		}
	}},
	{"ids: more digits are more, whatever the first", func(b *bench) {
		b.given("main: 9-9 body=a\nmain: 10-1 body=b\nmain: 10-10 body=c\nmain @g: at 10-10\nmain @g c: 9-9 10-10\nmain @h: at 10-9\ngroups: g = 0-0|T-300000")
		b.then(b.compact(false, false), "ok removed=1 floor=9-9 by g", "- main: 10-1 body=b\n+ meta: compacted = T\n+ meta: cursor = 9-9")
	}},
	{"ids: recorded positions step down", func(b *bench) {
		for _, c := range []struct{ pending, position string }{
			{"5-1", "5-0"},
			{"5-0", "4-18446744073709551615"},
			{"100-0", "99-18446744073709551615"},
			{"5-100", "5-99"},
			{"9007199254740993-1", "9007199254740993-0"},
			{"9007199254740993-0", "9007199254740992-18446744073709551615"},
			{"18446744073709551615-0", "18446744073709551614-18446744073709551615"},
			{"1-0", "0-18446744073709551615"},
			{"0-1", "0-0"},
		} {
			b.do("DEL", b.k.Main, b.k.Retry, b.k.Groups, b.k.Stream.Meta)
			b.given(fmt.Sprintf("main: %s body=a\nmain @g: at %s\nmain @g c: %s", c.pending, c.pending, c.pending))
			b.ensure("0", GroupStart, "")
			b.equal("position before "+c.pending, b.do("HGET", b.k.Groups, "g"), fmt.Sprintf("%s|%d", c.position, epoch))
		}
	}},
	{"ids: settled beyond 2^53, the neighbour untouched", func(b *bench) {
		b.given(`main: 9007199254740992-0 body=a
			main: 9007199254740993-0 body=b
			main @g: at 9007199254740993-0
			main @g c: 9007199254740992-0 9007199254740993-0`)
		b.then(b.settle("c", Settlement{Verb: Snooze, Source: Main, EntryID: "9007199254740993-0"}), "parked m/9007199254740993-0",
			`- main @g c: 9007199254740992-0 9007199254740993-0
			+ main @g c: 9007199254740992-0
			+ due: m/9007199254740993-0 = T
			+ parked: m/9007199254740993-0 = body=b oid=9007199254740993-0`)
	}},
	{"ids: reclaim walks beyond 2^53", func(b *bench) {
		b.given("main @g: at 0-0\nworkers: c = 1000|T|v|dead|")
		for i := range 120 {
			b.add(b.k.Main, fmt.Sprintf("90071992547409%02d-%d", 92+i/20, 1+i%20), "body", fmt.Sprint(i))
		}
		b.do("XREADGROUP", "GROUP", "g", "c", "COUNT", 1000, "STREAMS", b.k.Main, ">")
		b.equal("first", b.reclaim("c", 3), "moved=100 more")
		b.equal("second", b.reclaim("c", 3), "moved=20")
		b.equal("waiting", b.c.XLen(b.ctx, b.k.Retry).Val(), 120)
	}},
}
