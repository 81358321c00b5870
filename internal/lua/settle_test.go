package lua

import (
	"fmt"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/wire"
)

func (b *bench) settle(consumer string, list ...Settlement) string {
	return b.settleCap(consumer, 0, list...)
}

func (b *bench) settleCap(consumer string, most int, list ...Settlement) string {
	got, err := Settle(b.ctx, b.r, b.k, consumer, most, list)
	b.must(err)
	var out []string
	for _, s := range got {
		out = append(out, moments(strings.TrimSpace(s.Status+" "+s.Detail)))
		if s.Status == Dead && (s.Reason == "" || s.DeadID == "") {
			b.failf("a dead letter without reason or id: %+v", s)
		}
	}
	return strings.Join(out, " ; ")
}

// verbs are what each settlement makes of the fields of one and the same delivery.
var verbs = []struct {
	name, reply, to, fields string
	s                       Settlement
}{
	{"ack", "acked", "", "", Settlement{Verb: Ack}},
	{
		"fail", "parked %s/5-0", "parked", "body=a x=y losses=2 cut=3 from=f rc=2 oid=7-0 err=new",
		Settlement{Verb: Fail, Delay: 1500 * time.Millisecond, Limit: 5, Error: "new"},
	},
	{
		"fail for ever", "parked %s/5-0", "parked", "body=a x=y losses=2 cut=3 from=f rc=2 oid=7-0 err=new",
		Settlement{Verb: Fail, Delay: 1500 * time.Millisecond, Limit: -1, Error: "new"},
	},
	{
		"fail the last time", "dead retries *", "dlq", "body=a x=y losses=2 cut=3 from=f rc=2 oid=7-0 err=new reason=retries",
		Settlement{Verb: Fail, Delay: 1500 * time.Millisecond, Limit: 1, Error: "new"},
	},
	{
		"fail at limit 0", "dead retries *", "dlq", "body=a x=y losses=2 cut=3 from=f rc=2 oid=7-0 err=new reason=retries",
		Settlement{Verb: Fail, Limit: 0, Error: "new"},
	},
	{
		"snooze", "parked %s/5-0", "parked", "body=a x=y rc=1 losses=2 cut=3 err=old from=f oid=7-0",
		Settlement{Verb: Snooze, Delay: 1500 * time.Millisecond},
	},
	{
		"bury", "dead expired *", "dlq", "body=a x=y rc=1 lost=1 losses=2 cut=3 err=old from=f oid=7-0 reason=expired",
		Settlement{Verb: Bury, Reason: "expired"},
	},
	{
		"bury, counted", "dead rejected *", "dlq", "body=a x=y lost=1 losses=2 cut=3 from=f rc=2 oid=7-0 err=new reason=rejected",
		Settlement{Verb: Bury, Reason: "rejected", Counts: true, Error: "new"},
	},
	{
		"release", "released", "retry", "body=a x=y rc=1 lost=1 losses=2 cut=3 err=old from=f oid=7-0",
		Settlement{Verb: Release},
	},
	{
		"cut", "released", "retry", "body=a x=y rc=1 lost=1 losses=2 err=old from=f cut=4 oid=7-0",
		Settlement{Verb: Cut, Limit: 4},
	},
	{
		"cut too often", "dead cut *", "dlq", "body=a x=y rc=1 lost=1 losses=2 err=old from=f cut=4 oid=7-0 reason=cut",
		Settlement{Verb: Cut, Limit: 3},
	},
}

// settleVerbs are verb × {main, retry} × {held, held by another, acked, deleted, deleted and given}.
func settleVerbs() []check {
	const fields = "body=a x=y rc=1 lost=1 losses=2 cut=3 err=old from=f oid=7-0"
	names := map[string]string{Main: "main", Retry: "retry"}
	var out []check
	for _, v := range verbs {
		for _, src := range []string{Main, Retry} {
			s, stream := v.s, names[src]
			s.Source, s.EntryID = src, "5-0"
			acked := fmt.Sprintf("- %s @g c: 4-0 5-0\n+ %s @g c: 4-0\n", stream, stream)
			moved := acked
			switch v.to {
			case "parked":
				moved += fmt.Sprintf("+ due: %s/5-0 = T+1500\n+ parked: %s/5-0 = %s\n", src, src, v.fields)
			case "dlq":
				moved += "+ dlq: * " + v.fields + "\n"
			case "retry":
				moved = fmt.Sprintf("+ retry: * %s\n%s", v.fields, moved)
			}
			gone := ""
			if src == Retry {
				gone = "- retry: 5-0 " + fields + "\n"
			}
			reply := v.reply
			if strings.Contains(reply, "%s") {
				reply = fmt.Sprintf(reply, src)
			}
			given := func(b *bench, entry, held string) {
				b.given(fmt.Sprintf("%s: 4-0 body=other\n%s: 5-0 %s\n%s: 6-0 body=unread\n%s @g: at 5-0\n%s @g c: 4-0\n%s",
					stream, stream, entry, stream, stream, stream, held))
			}
			held := fmt.Sprintf("%s @g c: 5-0", stream)
			add := func(state string, run func(b *bench)) {
				out = append(out, check{fmt.Sprintf("settle %s, %s, %s", v.name, stream, state), run})
			}
			add("held", func(b *bench) {
				given(b, fields, held)
				b.then(b.settle("c", s), reply, gone+moved)
				b.then(b.settle("c", s), Lost, "") // a second time: nothing
			})
			add("held by another", func(b *bench) {
				given(b, fields, fmt.Sprintf("%s @g d: 5-0", stream))
				b.then(b.settle("c", s), Lost, "")
			})
			add("pending for nobody", func(b *bench) {
				given(b, fields, "")
				b.then(b.settle("c", s), Lost, "")
			})
			add("deleted", func(b *bench) {
				given(b, "!", held)
				if v.name == "ack" {
					b.then(b.settle("c", s), Acked, acked)
					return
				}
				b.then(b.settle("c", s), Gone, "")
				s := s
				s.Packed = wire.Pack(tokens(fields))
				b.then(b.settle("c", s), reply, moved)
			})
			if v.name != "ack" {
				add("deleted, and what was kept cannot be read", func(b *bench) {
					given(b, "!", held)
					s := s
					s.Packed = "\x02junk"
					b.then(b.settle("c", s), Gone, "")
				})
			}
		}
	}
	return out
}

var settleChecks = []check{
	{"settle: each by itself, a full list", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main: 3-0 body=c
			main: 4-0 body=d
			main @g: at 4-0
			main @g c: 1-0 2-0 4-0
			main @g d: 3-0`)
		b.then(b.settle("c",
			Settlement{Verb: Ack, Source: Main, EntryID: "1-0"},
			Settlement{Verb: Fail, Source: Main, EntryID: "2-0", Limit: 3, Delay: time.Minute, Error: "e"},
			Settlement{Verb: Release, Source: Main, EntryID: "3-0"},
			Settlement{Verb: Release, Source: Main, EntryID: "4-0"}),
			"acked ; parked m/2-0 ; lost ; released",
			`- main @g c: 1-0 2-0 4-0
			+ main @g c:
			+ retry: * body=d oid=4-0
			+ due: m/2-0 = T+60000
			+ parked: m/2-0 = body=b rc=1 oid=2-0 err=e`)
	}},
	{"settle: the stable id is the first entry's", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b oid=""
			main @g: at 2-0
			main @g c: 1-0 2-0`)
		b.then(b.settle("c", Settlement{Verb: Release, Source: Main, EntryID: "1-0"}, Settlement{Verb: Release, Source: Main, EntryID: "2-0"}),
			"released ; released", `- main @g c: 1-0 2-0
			+ main @g c:
			+ retry: * body=a oid=1-0
			+ retry: * body=b oid=2-0`)
	}},
	{"settle: most parked", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main: 3-0 body=c
			main @g: at 3-0
			main @g c: 1-0 2-0 3-0
			parked: m/0-1 = body=x
			due: m/0-1 = T+1`)
		fail := func(id string) Settlement {
			return Settlement{Verb: Fail, Source: Main, EntryID: id, Limit: 3, Delay: time.Second, Error: "e"}
		}
		b.then(b.settleCap("c", 2, fail("1-0"), fail("2-0"), Settlement{Verb: Snooze, Source: Main, EntryID: "3-0", Delay: time.Second}),
			"parked m/1-0 ; dead overflow * ; parked m/3-0",
			`- main @g c: 1-0 2-0 3-0
			+ main @g c:
			+ dlq: * body=b rc=1 oid=2-0 err=e reason=overflow
			+ due: m/1-0 = T+1000
			+ due: m/3-0 = T+1000
			+ parked: m/1-0 = body=a rc=1 oid=1-0 err=e
			+ parked: m/3-0 = body=c oid=3-0`)
	}},
	{"settle: a taken member is never overwritten", func(b *bench) {
		b.given(`main: 1-0 body=new
			main @g: at 1-0
			main @g c: 1-0
			parked: m/1-0 = body=old
			parked: m/1-0/2 = body=older
			due: m/1-0 = T+7`)
		b.then(b.settle("c", Settlement{Verb: Snooze, Source: Main, EntryID: "1-0", Delay: time.Second}), "parked m/1-0/3",
			`- main @g c: 1-0
			+ main @g c:
			+ due: m/1-0/3 = T+1000
			+ parked: m/1-0/3 = body=new oid=1-0`)
	}},
	{"settle: two entries that call themselves one message stay two", func(b *bench) {
		b.given(`main: 1-0 body=a oid=o
			main: 2-0 body=b oid=o
			main @g: at 2-0
			main @g c: 1-0 2-0`)
		fail := func(id string) Settlement {
			return Settlement{Verb: Fail, Source: Main, EntryID: id, Limit: 3, Delay: time.Second, Error: "e"}
		}
		b.then(b.settle("c", fail("1-0"), fail("2-0")), "parked m/1-0 ; parked m/2-0",
			`- main @g c: 1-0 2-0
			+ main @g c:
			+ due: m/1-0 = T+1000
			+ due: m/2-0 = T+1000
			+ parked: m/1-0 = body=a rc=1 oid=o err=e
			+ parked: m/2-0 = body=b rc=1 oid=o err=e`)
	}},
	{"settle: a dead letter stream of the wrong type", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main: 3-0 body=c
			main @g: at 3-0
			main @g c: 1-0 2-0 3-0
			dlq = oops`)
		b.then(b.settle("c",
			Settlement{Verb: Ack, Source: Main, EntryID: "1-0"},
			Settlement{Verb: Bury, Source: Main, EntryID: "2-0", Reason: "rejected", Error: "e"},
			Settlement{Verb: Release, Source: Main, EntryID: "3-0"}),
			"acked ; error WRONGTYPE Operation against a key holding the wrong kind of value (XADD "+b.k.DLQ+") ; released",
			`- main @g c: 1-0 2-0 3-0
			+ main @g c: 2-0
			+ retry: * body=c oid=3-0`)
		b.do("DEL", b.k.DLQ)
		b.last = b.state()
		b.then(b.settle("c", Settlement{Verb: Bury, Source: Main, EntryID: "2-0", Reason: "rejected", Error: "e"}), "dead rejected *",
			`- main @g c: 2-0
			+ main @g c:
			+ dlq: * body=b oid=2-0 err=e reason=rejected`)
	}},
	{"settle: a retry stream of the wrong type", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main: 3-0 body=c
			main @g: at 3-0
			main @g c: 1-0 2-0 3-0
			retry = oops`)
		b.then(b.settle("c",
			Settlement{Verb: Release, Source: Main, EntryID: "1-0"},
			Settlement{Verb: Ack, Source: Retry, EntryID: "1-0"},
			Settlement{Verb: Ack, Source: Main, EntryID: "2-0"},
			Settlement{Verb: Snooze, Source: Main, EntryID: "3-0", Delay: time.Second}),
			"error WRONGTYPE Operation against a key holding the wrong kind of value (XADD "+b.k.Retry+") ; "+
				"error WRONGTYPE Operation against a key holding the wrong kind of value ; acked ; parked m/3-0",
			`- main @g c: 1-0 2-0 3-0
			+ main @g c: 1-0
			+ due: m/3-0 = T+1000
			+ parked: m/3-0 = body=c oid=3-0`)
	}},
	{"settle: a parked hash or a due set of the wrong type", func(b *bench) {
		snooze := Settlement{Verb: Snooze, Source: Main, EntryID: "1-0", Delay: time.Second}
		for _, key := range []string{"parked", "due"} {
			b.do("DEL", b.k.Main, b.k.Parked, b.k.Due)
			b.given("main: 1-0 body=a\nmain @g: at 1-0\nmain @g c: 1-0\n" + key + " = oops")
			cmd, name := "HSETNX", b.k.Parked
			if key == "due" {
				cmd, name = "ZADD", b.k.Due
			}
			b.then(b.settle("c", snooze), "error WRONGTYPE Operation against a key holding the wrong kind of value ("+cmd+" "+name+")", "")
		}
	}},
	{"settle: no group", func(b *bench) {
		b.given("main: 1-0 body=a\nseen 1-0 = 0")
		b.do("DEL", b.k.Seen("1-0"))
		b.last = b.state()
		got := b.settle("c", Settlement{Verb: Fail, Source: Main, EntryID: "1-0", Limit: 3, Error: "e"},
			Settlement{Verb: Ack, Source: Main, EntryID: "1-0", Seen: b.k.Seen("1-0"), TTL: time.Hour})
		if strings.Count(got, "error NOGROUP") != 2 {
			b.failf("reply %s", got)
		}
		b.then("", "", "+ seen 1-0 = 1 px") // the work was done all the same
	}},
	{"settle: markers", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=b
			main: 3-0 body=c
			main @g: at 3-0
			main @g c: 1-0 3-0
			main @g d: 2-0
			retry: 8-0 body=r oid=7-0
			retry @g: at 8-0
			retry @g c: 8-0`)
		b.seen = []string{"1-0", "2-0", "3-0", "7-0", "9-0"}
		ack := func(src, id, stable string) Settlement {
			return Settlement{Verb: Ack, Source: src, EntryID: id, Seen: b.k.Seen(stable), TTL: time.Hour}
		}
		b.then(b.settle("c", ack(Main, "1-0", "1-0"), Settlement{Verb: Ack, Source: Main, EntryID: "3-0"}, ack(Main, "2-0", "2-0"),
			ack(Retry, "8-0", "7-0"), ack(Main, "9-0", "9-0")),
			"acked ; acked ; lost ; acked ; lost",
			`- main @g c: 1-0 3-0
			- retry: 8-0 body=r oid=7-0
			- retry @g c: 8-0
			+ main @g c:
			+ retry @g c:
			+ seen 1-0 = 1 px
			+ seen 2-0 = 1 px
			+ seen 7-0 = 1 px
			+ seen 9-0 = 1 px`)
		for _, id := range []string{"1-0", "2-0"} {
			ttl := b.c.PTTL(b.ctx, b.k.Seen(id)).Val()
			if ttl > time.Hour || ttl < 50*time.Minute {
				b.failf("the marker of %s lives %v, want an hour", id, ttl)
			}
		}
	}},
	{"settle: junk counters count as 0", func(b *bench) {
		for i, junk := range []string{"nan", "-1", "1e9", "1234567890", "", " 1", "1 ", "0x1", "1.5", "inf", "+1"} {
			id := fmt.Sprintf("%d-0", i+1)
			b.do("DEL", b.k.Main, b.k.Retry, b.k.Parked, b.k.Due)
			b.given(fmt.Sprintf("main: %s body=a rc=%s cut=%q\nmain @g: at %s\nmain @g c: %s", id, show(junk), junk, id, id))
			b.then(b.settle("c", Settlement{Verb: Fail, Source: Main, EntryID: id, Limit: 3, Delay: time.Second, Error: "e"}), "parked m/"+id,
				fmt.Sprintf("- main @g c: %s\n+ main @g c:\n+ due: m/%s = T+1000\n+ parked: m/%s = body=a cut=%s rc=1 oid=%s err=e", id, id, id, show(junk), id))
		}
		b.do("DEL", b.k.Main, b.k.Retry, b.k.Parked, b.k.Due)
		b.given("main: 99-0 body=a rc=999999999 cut=000000007\nmain @g: at 99-0\nmain @g c: 99-0")
		b.then(b.settle("c", Settlement{Verb: Cut, Source: Main, EntryID: "99-0", Limit: 100}), "released",
			"- main @g c: 99-0\n+ main @g c:\n+ retry: * body=a rc=999999999 cut=8 oid=99-0")
	}},
	{"settle: counters stop at nine digits", func(b *bench) {
		b.given(`main: 1-0 body=a rc=999999999
			main: 2-0 body=b rc=999999999
			main: 3-0 body=c cut=999999999
			main: 4-0 body=d rc=999999998
			main @g: at 4-0
			main @g c: 1-0 2-0 3-0 4-0`)
		b.then(b.settle("c",
			Settlement{Verb: Fail, Source: Main, EntryID: "1-0", Limit: -1, Error: "e"},
			Settlement{Verb: Bury, Source: Main, EntryID: "2-0", Reason: "rejected", Counts: true},
			Settlement{Verb: Cut, Source: Main, EntryID: "3-0", Limit: 100},
			Settlement{Verb: Fail, Source: Main, EntryID: "4-0", Limit: 5, Error: "e"},
		), "parked m/1-0 ; dead rejected * ; dead cut * ; dead retries *", `- main @g c: 1-0 2-0 3-0 4-0
			+ main @g c:
			+ due: m/1-0 = T
			+ parked: m/1-0 = body=a rc=999999999 oid=1-0 err=e
			+ dlq: * body=b rc=999999999 oid=2-0 reason=rejected
			+ dlq: * body=c cut=999999999 oid=3-0 reason=cut
			+ dlq: * body=d rc=999999999 oid=4-0 err=e reason=retries`)
	}},
	{"settle: the first of a name counts, all of it is replaced", func(b *bench) {
		b.given("main: 1-0 rc=1 body=a rc=7 oid=o body=b oid=p err=x err=y\nmain @g: at 1-0\nmain @g c: 1-0")
		b.then(b.settle("c", Settlement{Verb: Fail, Source: Main, EntryID: "1-0", Limit: 2, Delay: time.Second, Error: "e"}), "parked m/1-0",
			`- main @g c: 1-0
			+ main @g c:
			+ due: m/1-0 = T+1000
			+ parked: m/1-0 = body=a body=b rc=2 oid=o err=e`)
	}},
	{"settle: delays of ten years pass exactly", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 1-0\nmain @g c: 1-0")
		b.settle("c", Settlement{Verb: Snooze, Source: Main, EntryID: "1-0", Delay: 3650*24*time.Hour + time.Millisecond})
		b.equal("due", b.do("ZSCORE", b.k.Due, "m/1-0"), float64(epoch+3650*24*3600*1000+1))
	}},
}
