package lua

import (
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

func (b *bench) promote(delayed bool) string {
	f := PromoteRetries
	if delayed {
		f = PromoteDelayed
	}
	got, err := f(b.ctx, b.r, b.k)
	b.must(err)
	out := []string{fmt.Sprint("moved=", got.Moved)}
	if got.Missing > 0 {
		out[0] += fmt.Sprint(" missing=", got.Missing)
	}
	if got.More {
		out[0] += " more"
	}
	if got.Mismatch {
		out[0] += " mismatch"
	}
	for _, d := range got.Dead {
		out = append(out, "dead "+d.Reason+" "+d.DeadID+" "+d.Source)
	}
	for _, e := range got.Errors {
		out = append(out, "error "+e)
	}
	return moments(strings.Join(out, " ; "))
}

// park puts values into a parked set, all due at the epoch.
func (b *bench) park(due, parked string, n int, value string) {
	for from := 0; from < n; from += 1000 {
		scores, values := []any{"ZADD", due}, []any{"HSET", parked}
		for i := from; i < min(n, from+1000); i++ {
			member := fmt.Sprintf("m/%d-0", i+1)
			scores = append(scores, epoch, member)
			values = append(values, member, value)
		}
		b.do(scores...)
		b.do(values...)
	}
}

var promoteChecks = []check{
	{"promote: what is due, in order of its due time", func(b *bench) {
		b.given(`parked: m/1-0 = body=a rc=1 oid=1-0 err=e
			parked: m/2-0 = body=b rc=1 oid=2-0
			parked: r/3-0 = body=c
			due: m/1-0 = T
			due: m/2-0 = T+1
			due: r/3-0 = T-5
			sparked: d-T-00 = body=z
			sdue: d-T-00 = T
			retry @g: at 0-0`)
		b.then(b.promote(false), "moved=2", `- parked: m/1-0 = body=a rc=1 oid=1-0 err=e
			- parked: r/3-0 = body=c
			- due: m/1-0 = T
			- due: r/3-0 = T-5
			+ retry: * body=c
			+ retry: * body=a rc=1 oid=1-0 err=e`)
		if first := b.c.XRange(b.ctx, b.k.Retry, "-", "+").Val()[0]; first.Values["body"] != "c" {
			b.failf("the later due went first: %v", first)
		}
		b.then(b.promote(false), "moved=0", "")
		b.at(1)
		b.then(b.promote(false), "moved=1", "- parked: m/2-0 = body=b rc=1 oid=2-0\n- due: m/2-0 = T+1\n+ retry: * body=b rc=1 oid=2-0")
	}},
	{"promote: delayed messages keep the id they were given", func(b *bench) {
		b.given(`sparked: d-T-00000000000000ab = body=a did=k x=y
			sparked: m/9-0 = body=b
			sparked: d-T-0d = body=c oid=zzz
			sdue: d-T-00000000000000ab = T
			sdue: d-T-0d = T
			sdue: m/9-0 = T
			parked: m/1-0 = body=q
			due: m/1-0 = T`)
		b.then(b.promote(true), "moved=3", `- sparked: d-T-00000000000000ab = body=a did=k x=y
			- sparked: m/9-0 = body=b
			- sparked: d-T-0d = body=c oid=zzz
			- sdue: d-T-00000000000000ab = T
			- sdue: d-T-0d = T
			- sdue: m/9-0 = T
			+ main: * body=a did=k x=y oid=d-T-00000000000000ab due=T
			+ main: * body=b
			+ main: * body=c oid=d-T-0d due=T`)
	}},
	{"promote: a delayed message tells when it was due", func(b *bench) {
		b.given(`sparked: d-T-00000000000000ab = body=a due=5
			sdue: d-T-00000000000000ab = T-90000
			parked: m/1-0 = body=b due=5 oid=d-T-0d
			due: m/1-0 = T`)
		b.then(b.promote(true), "moved=1", `- sparked: d-T-00000000000000ab = body=a due=5
			- sdue: d-T-00000000000000ab = T-90000
			+ main: * body=a oid=d-T-00000000000000ab due=T-90000`)
		b.then(b.promote(false), "moved=1", `- parked: m/1-0 = body=b due=5 oid=d-T-0d
			- due: m/1-0 = T
			+ retry: * body=b due=5 oid=d-T-0d`)
	}},
	{"promote: members without a value, values without a member", func(b *bench) {
		b.given(`parked: m/1-0 = body=a
			parked: m/3-0 = body=c
			due: m/1-0 = T
			due: m/2-0 = T`)
		b.then(b.promote(false), "moved=1 missing=1 mismatch", `- parked: m/1-0 = body=a
			- due: m/1-0 = T
			- due: m/2-0 = T
			+ retry: * body=a`)
		b.then(b.promote(false), "moved=0 mismatch", "")
	}},
	{"promote: values that cannot be read go to the dead letters raw", func(b *bench) {
		raws := []string{"", "junk", `"\x02` + `4:body,1:a,"`, `"\x01"`, `"\x014:body,"`, `"\x014:body,1:a"`, `"\x014:body,9:a,"`, `"\x01x:body,1:a,"`, `"\x01-1:,1:a,"`, `"\x014:body,1:a,4:tail,"`}
		given, want := "", ""
		var reply []string
		for i, raw := range raws {
			given += fmt.Sprintf("parked: m/%d-0 = raw %s\ndue: m/%d-0 = T\n", i+10, show(read(raw)), i+10)
			want += fmt.Sprintf("- parked: m/%d-0 = raw %s\n- due: m/%d-0 = T\n+ dlq: * raw=%s member=m/%d-0 reason=malformed\n", i+10, show(read(raw)), i+10, show(read(raw)), i+10)
			reply = append(reply, fmt.Sprintf("dead malformed * m/%d-0", i+10))
		}
		b.given(given + "parked: m/99-0 = body=good\ndue: m/99-0 = T")
		b.then(b.promote(false), "moved=1 ; "+strings.Join(reply, " ; "),
			want+"- parked: m/99-0 = body=good\n- due: m/99-0 = T\n+ retry: * body=good")
	}},
	{"promote: malformed delayed ones go to the dead letters of the group that found them", func(b *bench) {
		b.given("sparked: d-T-00 = raw junk\nsdue: d-T-00 = T")
		b.then(b.promote(true), "moved=0 ; dead malformed * d-T-00",
			"- sparked: d-T-00 = raw junk\n- sdue: d-T-00 = T\n+ dlq: * raw=junk member=d-T-00 reason=malformed")
	}},
	{"promote: a target of the wrong type is reported, nothing is lost", func(b *bench) {
		b.given("parked: m/1-0 = body=a\nparked: m/2-0 = body=b\ndue: m/1-0 = T\ndue: m/2-0 = T\nretry = oops")
		e := "error WRONGTYPE Operation against a key holding the wrong kind of value (XADD " + b.k.Retry + ")"
		postponed := "- due: m/1-0 = T\n- due: m/2-0 = T\n+ due: m/1-0 = T+60000\n+ due: m/2-0 = T+60000"
		b.then(b.promote(false), "moved=0 ; "+e+" ; "+e, postponed)
		b.then(b.promote(false), "moved=0", "")
		b.do("DEL", b.k.Retry)
		b.last = b.state()
		b.at(60_000)
		b.then(b.promote(false), "moved=2", `- parked: m/1-0 = body=a
			- parked: m/2-0 = body=b
			- due: m/1-0 = T+60000
			- due: m/2-0 = T+60000
			+ retry: * body=a
			+ retry: * body=b`)
	}},
	{"promote: dead letters of the wrong type do not stop those behind", func(b *bench) {
		b.given("parked: m/1-0 = raw junk\nparked: m/2-0 = body=b\ndue: m/1-0 = T\ndue: m/2-0 = T\ndlq = oops")
		b.then(b.promote(false), "moved=1 ; error WRONGTYPE Operation against a key holding the wrong kind of value (XADD "+b.k.DLQ+")",
			"- parked: m/2-0 = body=b\n- due: m/2-0 = T\n+ retry: * body=b\n- due: m/1-0 = T\n+ due: m/1-0 = T+60000")
	}},
	{"promote: hundreds that cannot be moved do not stop those behind", func(b *bench) {
		b.given("retry @g: at 0-0\ndlq = oops")
		b.park(b.k.Due, b.k.Parked, 250, "junk")
		for i := range 5 {
			member := fmt.Sprintf("r/%d-0", i+1)
			b.do("HSET", b.k.Parked, member, "\x014:body,1:a,")
			b.do("ZADD", b.k.Due, epoch+1+i, member)
		}
		b.at(10)
		round := func(steps ...string) {
			for i, want := range steps {
				moved, errors, _ := strings.Cut(b.promote(false), " ; ")
				b.equal(fmt.Sprint("step ", i), fmt.Sprint(moved, " errors=", strings.Count(errors, "error WRONGTYPE")), want)
			}
		}
		round("moved=0 errors=100", "moved=0 errors=100", "moved=5 errors=50", "moved=0 errors=0")
		b.at(60_009)
		round("moved=0 errors=0")
		b.at(60_010)
		round("moved=0 errors=100")
		b.do("DEL", b.k.DLQ)
		for i, want := range []int{100, 50, 0} {
			got, err := PromoteRetries(b.ctx, b.r, b.k)
			b.must(err)
			b.equal(fmt.Sprint("mended, step ", i), len(got.Dead), want)
		}
		b.at(120_010)
		got, err := PromoteRetries(b.ctx, b.r, b.k)
		b.must(err)
		b.equal("the last hundred", len(got.Dead), 100)
		b.equal("left", b.c.Exists(b.ctx, b.k.Due, b.k.Parked).Val(), 0)
	}},
	{"promote: bounded in entries", func(b *bench) {
		b.given("retry @g: at 0-0")
		b.park(b.k.Due, b.k.Parked, 250, "\x014:body,1:a,")
		for i, want := range []string{"moved=100 more", "moved=100 more", "moved=50", "moved=0"} {
			b.equal(fmt.Sprint("step ", i), b.promote(false), want)
		}
		b.equal("waiting", b.c.XLen(b.ctx, b.k.Retry).Val(), 250)
		b.equal("left", b.c.Exists(b.ctx, b.k.Due, b.k.Parked).Val(), 0)
	}},
	{"promote: bounded in bytes, at least one entry", func(b *bench) {
		b.given("retry @g: at 0-0")
		b.park(b.k.Due, b.k.Parked, 3, fmt.Sprintf("\x014:body,%d:%s,", 1<<20, strings.Repeat("x", 1<<20)))
		for i, want := range []string{"moved=1 more", "moved=1 more", "moved=1", "moved=0"} {
			b.equal(fmt.Sprint("step ", i), b.promote(false), want)
		}
	}},
	{"promote: pauses while plenty is unread", func(b *bench) {
		b.given("retry @g: at 0-0")
		fill := func(n int) {
			_, err := b.c.Pipelined(b.ctx, func(p redis.Pipeliner) error {
				for range n {
					p.Do(b.ctx, "XADD", b.k.Retry, "*", "body", "a")
				}
				return nil
			})
			b.must(err)
		}
		drain := func(n int) {
			for _, s := range b.do("XREADGROUP", "GROUP", "g", "c", "COUNT", n, "STREAMS", b.k.Retry, ">").(map[any]any) {
				args := []any{"XACK", b.k.Retry, "g"}
				for _, e := range s.([]any) {
					args = append(args, e.([]any)[0])
				}
				b.do(args...)
				args = append([]any{"XDEL", b.k.Retry}, args[3:]...)
				b.do(args...)
			}
		}
		b.park(b.k.Due, b.k.Parked, 700, "\x014:body,1:a,")
		fill(2000)
		b.equal("at 2000", b.promote(false), "moved=100 more")
		b.equal("at 2100", b.promote(false), "moved=0")
		b.equal("the mark", b.do("HGET", b.k.Meta, "held"), "1")
		drain(1000)
		b.equal("at 1100", b.promote(false), "moved=0")
		drain(100)
		b.equal("at 1000", b.promote(false), "moved=0")
		b.equal("delayed ones do not wait", b.promote(true), "moved=0")
		// what is pending does not count as unread
		b.do("XREADGROUP", "GROUP", "g", "c", "COUNT", 1, "STREAMS", b.k.Retry, ">")
		b.equal("at 999", b.promote(false), "moved=100 more")
		b.equal("the mark", b.do("HGET", b.k.Meta, "held"), nil)
		b.equal("at 1099", b.promote(false), "moved=100 more")
	}},
	{"promote: without a group in the retry stream all the same", func(b *bench) {
		b.given("parked: m/1-0 = body=a\ndue: m/1-0 = T")
		b.then(b.promote(false), "moved=1", "- parked: m/1-0 = body=a\n- due: m/1-0 = T\n+ retry: * body=a")
	}},
	{"janitor: orphans become due now", func(b *bench) {
		b.given(`parked: m/1-0 = body=a
			parked: m/2-0 = body=b
			parked: m/3-0 = raw junk
			due: m/1-0 = T+5000
			due: m/9-0 = T`)
		next, found, err := Orphans(b.ctx, b.r, b.k.Due, b.k.Parked, "")
		b.must(err)
		b.then(fmt.Sprint(next, " ", found), "0 2", "+ due: m/2-0 = T\n+ due: m/3-0 = T")
		next, found, err = Orphans(b.ctx, b.r, b.k.Due, b.k.Parked, "0")
		b.must(err)
		b.then(fmt.Sprint(next, " ", found), "0 0", "")
	}},
	{"janitor: walks in bounded steps and finds all", func(b *bench) {
		b.given("")
		b.park(b.k.Due, b.k.Parked, 5000, "\x014:body,1:a,")
		b.do("DEL", b.k.Due)
		cursor, steps, total := "", 0, int64(0)
		for cursor != "0" {
			next, found, err := Orphans(b.ctx, b.r, b.k.Due, b.k.Parked, cursor)
			b.must(err)
			if found > 250 {
				b.failf("%d in one step", found)
			}
			cursor, total = next, total+found
			if steps++; steps > 1000 {
				b.fatalf("no end")
			}
		}
		b.equal("found", total, 5000)
		b.equal("due", b.c.ZCard(b.ctx, b.k.Due).Val(), 5000)
	}},
	{"janitor: large values, few at a time", func(b *bench) {
		b.given("")
		b.park(b.k.Due, b.k.Parked, 60, "\x014:body,65536:"+strings.Repeat("a", 65536)+",")
		b.do("DEL", b.k.Due)
		for cursor, steps := "", 0; cursor != "0"; steps++ {
			next, found, err := Orphans(b.ctx, b.r, b.k.Due, b.k.Parked, cursor)
			b.must(err)
			if found > 20 || steps > 1000 {
				b.fatalf("%d in one step, step %d", found, steps)
			}
			cursor = next
		}
		b.equal("due", b.c.ZCard(b.ctx, b.k.Due).Val(), 60)
	}},
	{"janitor: nothing parked, the wrong type", func(b *bench) {
		b.given("due = oops")
		next, found, err := Orphans(b.ctx, b.r, b.k.Due, b.k.Parked, "0")
		b.must(err)
		b.then(fmt.Sprint(next, " ", found), "0 0", "")
		b.given("parked: m/1-0 = body=a")
		_, _, err = Orphans(b.ctx, b.r, b.k.Due, b.k.Parked, "0")
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
			b.failf("error %v, want WRONGTYPE", err)
		}
	}},
}

func (b *bench) publish(p Publication) string {
	id, dup, err := Publish(b.ctx, b.r, b.k.Stream, p)
	if err != nil {
		return "error " + err.Error()
	}
	if dup {
		id += " duplicate"
	}
	return moments(id)
}

var publishChecks = []check{
	{"publish: delayed", func(b *bench) {
		b.given("")
		p := Publication{Delay: 1500 * time.Millisecond, Random: "00000000000000ab", Fields: []string{"body", "a", "did", "", "", "x"}}
		b.then(b.publish(p), "d-T-00000000000000ab", `+ sdue: d-T-00000000000000ab = T+1500
			+ sparked: d-T-00000000000000ab = body=a did="" ""=x`)
		b.then(b.publish(p), "d-T-00000000000000ab/2", `+ sdue: d-T-00000000000000ab/2 = T+1500
			+ sparked: d-T-00000000000000ab/2 = body=a did="" ""=x`)
	}},
	{"publish: at a time to come, at one that is past", func(b *bench) {
		b.given("")
		p := Publication{At: time.UnixMilli(epoch + 1), Random: "ab", Fields: []string{"body", "a"}}
		b.then(b.publish(p), "d-T-ab", "+ sdue: d-T-ab = T+1\n+ sparked: d-T-ab = body=a")
		for _, at := range []int64{0, -1, -epoch + 1} {
			p.At = time.UnixMilli(epoch + at)
			b.then(b.publish(p), "*", "+ main: * body=a")
		}
	}},
	{"publish: deduplicated", func(b *bench) {
		b.given("")
		b.sent = []string{"k", "l"}
		p := Publication{DedupeID: "k", Window: time.Hour, Fields: []string{"body", "a", "did", "k"}}
		b.then(b.publish(p), "*", "+ main: * body=a did=k\n+ sent k = * px")
		id := b.do("GET", b.k.Sent("k")).(string)
		b.equal("the marker", id, b.c.XRange(b.ctx, b.k.Main, "-", "+").Val()[0].ID)
		again, dup, err := Publish(b.ctx, b.r, b.k.Stream, p)
		b.must(err)
		b.equal("the id of the first", again, id)
		b.equal("a duplicate", dup, true)
		b.then("", "", "")
		p.Delay, p.Random = time.Minute, "ab"
		b.then(b.publish(p), "* duplicate", "")
		p.DedupeID = "l"
		b.then(b.publish(p), "d-T-ab", "+ sent l = d-T-ab px\n+ sdue: d-T-ab = T+60000\n+ sparked: d-T-ab = body=a did=k")
		b.then(b.publish(p), "d-T-ab duplicate", "")
		p.Wait = true
		b.then(b.publish(p), "d-T-ab duplicate", "")
		p.Wait = false
		if ttl := b.c.PTTL(b.ctx, b.k.Sent("l")).Val(); ttl > time.Hour || ttl < 50*time.Minute {
			b.failf("the marker lives %v, want an hour", ttl)
		}
		b.do("DEL", b.k.Sent("l"))
		b.last = b.state()
		p.Random = "cd"
		b.then(b.publish(p), "d-T-cd", "+ sent l = d-T-cd px\n+ sdue: d-T-cd = T+60000\n+ sparked: d-T-cd = body=a did=k")
	}},
	{"publish: a marker that is refused leaves nothing", func(b *bench) {
		b.given("main: 1-0 body=other")
		b.sent = []string{"k"}
		p := Publication{DedupeID: "k", Window: 0, Random: "ab", Fields: []string{"body", "a"}} // no marker may live 0 ms
		for _, delay := range []time.Duration{0, time.Minute} {
			p.Delay = delay
			if got := b.publish(p); !strings.Contains(got, "invalid expire") {
				b.failf("%s, want the server's refusal", got)
			}
			b.then("", "", "")
		}
	}},
	{"publish: keys of the wrong type", func(b *bench) {
		b.given("sparked = oops")
		b.sent = []string{"k"}
		p := Publication{DedupeID: "k", Window: time.Hour, Delay: time.Minute, Random: "ab", Fields: []string{"body", "a"}}
		if got := b.publish(p); !strings.Contains(got, "WRONGTYPE") || !strings.Contains(got, b.k.Stream.Parked) {
			b.failf("%s, want WRONGTYPE and the key", got)
		}
		b.then("", "", "")
		b.do("DEL", b.k.Stream.Parked)
		b.given("sdue = oops")
		if got := b.publish(p); !strings.Contains(got, "WRONGTYPE") || !strings.Contains(got, b.k.Stream.Due) {
			b.failf("%s, want WRONGTYPE and the key", got)
		}
		b.then("", "", "")
		b.given("main = oops")
		p.Delay = 0
		if got := b.publish(p); !strings.Contains(got, "WRONGTYPE") || !strings.Contains(got, b.k.Main) {
			b.failf("%s, want WRONGTYPE and the key", got)
		}
		b.then("", "", "")
	}},
}
