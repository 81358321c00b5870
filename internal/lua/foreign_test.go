package lua

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// ours are the fields that moves may write; all others travel on as they came.
var ours = []string{"rc", "lost", "losses", "cut", "oid", "from", "redriven", "due", "err", "reason"}

func travelling(f []string) []string {
	var out []string
	for i := 0; i+1 < len(f); i += 2 {
		if !slices.Contains(ours, f[i]) {
			out = append(out, f[i], f[i+1])
		}
	}
	return out
}

// only is the one entry of a stream.
func (b *bench) only(stream string) (id string, fields []string) {
	list := b.do("XRANGE", stream, "-", "+").([]any)
	if len(list) != 1 {
		b.fatalf("%s holds %d entries, want one", stream, len(list))
	}
	e := list[0].([]any)
	return e[0].(string), texts(e[1].([]any))
}

// wide is an entry of n fields.
func wide(n int) []string {
	f := []string{"body", "w\x00"}
	for i := 1; i < n; i++ {
		f = append(f, fmt.Sprintf("f%d", i%7), strings.Repeat("v", i%5))
	}
	return f
}

// foreign entries, as any client may write them.
var foreign = []struct {
	name   string
	fields []string
}{
	{"plain", []string{"body", "a"}},
	{"unknown fields around the body", []string{"z", "1", "body", "a", "b", "2", "a", "3"}},
	{"duplicate names", []string{"x", "1", "body", "a", "x", "2", "body", "b", "x", "1"}},
	{"empty names and values", []string{"", "", "body", "", "", "x", "y", ""}},
	{"binary", []string{"body", "a\x00\xff\r\n", "\x00\r\n\xfe", "\x01\x02:,", "n", "12:x,"}},
	{"names that look like numbers, or like ours", []string{"1", "1", "Body", "B", "RC", "9", "rc ", "8", "body", "15947634569000323", "oid2", "o"}},
	{"no body", []string{"data", "a"}},
	{"junk counters", []string{"rc", "nan", "body", "a", "lost", "-1", "losses", "1e9", "cut", "1234567890", "redriven", "", "rc", "5"}},
	{"an id of its own", []string{"body", "a", "oid", "order \xff 7", "oid", "other"}},
	{"1,000 fields", wide(1000)},
	{"as wide as may be", wide(3895)},
	{"1 MiB", []string{"k", "v", "body", strings.Repeat("\x00\xff0123456", 1<<17)}},
}

func foreignChecks() []check {
	var out []check
	for _, f := range foreign {
		out = append(out, check{"foreign: " + f.name, func(b *bench) { b.travels(f.fields) }})
	}
	return append(out, wideChecks...)
}

// travels takes an entry through every move there is and looks at it after each.
func (b *bench) travels(fields []string) {
	b.given("main @g: at 0-0\nretry @g: at 0-0\ngroups: g = 0-0|T\nworkers: c = 1000|T|v|live|")
	id := b.add(b.k.Main, "*", fields...)
	stable := wire.Parse(id, fields).ID
	same := func(step string, got []string) {
		if !slices.Equal(travelling(got), travelling(fields)) {
			b.fatalf("%s: %s, want %s", step, showFields(travelling(got)), showFields(travelling(fields)))
		}
		if m := wire.Parse("0-0", got); step != "published anew" && m.ID != stable {
			b.fatalf("%s: the stable id is %q, want %q", step, m.ID, stable)
		}
	}
	readFrom := func(stream string) string {
		b.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", stream, ">")
		at, got := b.only(stream)
		same("read from "+stream, append(slices.Clone(got), map[bool][]string{true: {"oid", stable}}[stream == b.k.Main]...))
		return at
	}
	settled := func(s Settlement, want string) {
		if got := b.settle("c", s); !strings.HasPrefix(got, moments(want)) {
			b.fatalf("%s: %s, want %s", s.Verb, got, want)
		}
	}
	parked := func(step, member string) {
		got, err := wire.Unpack(b.do("HGET", b.k.Parked, member).(string))
		b.must(err)
		same(step, got)
		b.do("ZADD", b.k.Due, epoch, member)
		b.equal("promoted", b.promote(false), "moved=1")
	}

	readFrom(b.k.Main)
	settled(Settlement{Verb: Fail, Source: Main, EntryID: id, Limit: 5, Delay: time.Second, Error: "e\x00\xff"}, "parked m/"+id)
	parked("failed", "m/"+id)

	at := readFrom(b.k.Retry)
	settled(Settlement{Verb: Release, Source: Retry, EntryID: at}, "released")
	at = readFrom(b.k.Retry)
	settled(Settlement{Verb: Snooze, Source: Retry, EntryID: at, Delay: time.Second}, "parked r/"+at)
	parked("snoozed", "r/"+at)

	b.do("HSET", b.k.Workers, "c", fmt.Sprintf("1000|%d|v|dead|", epoch))
	for range 2 {
		at = readFrom(b.k.Retry)
		b.equal("reclaimed", strings.TrimSuffix(b.reclaim("c", 9), " more"), "moved=1")
	}
	parked("suspected", "r/"+at)

	at = readFrom(b.k.Retry)
	_, kept := b.only(b.k.Retry)
	b.do("XDEL", b.k.Retry, at)
	settled(Settlement{Verb: Fail, Source: Retry, EntryID: at, Limit: 5, Error: "e", Packed: wire.Pack(kept)}, "parked r/"+at)
	parked("deleted and given", "r/"+at)

	at = readFrom(b.k.Retry)
	settled(Settlement{Verb: Bury, Source: Retry, EntryID: at, Reason: "rejected", Error: "no"}, "dead rejected")
	dead, got := b.only(b.k.DLQ)
	same("dead", got)

	letter := Letter{EntryID: dead, ID: stable}
	if !wire.Parse(dead, got).HasBody {
		b.equal("redriven", b.redrive(false, nil, letter), "unredrivable")
		return
	}
	b.equal("redriven", moments(b.redrive(false, nil, letter)), moments("moved x/"+dead))
	parked("redriven", "x/"+dead)
	at = readFrom(b.k.Retry)
	settled(Settlement{Verb: Cut, Source: Retry, EntryID: at, Limit: 0}, "dead cut")
	dead, got = b.only(b.k.DLQ)
	same("cut", got)
	m := wire.Parse(dead, got)
	b.equal("counters after a redrive", []int{m.RC, m.Lost, m.Losses, m.Cut, m.Redriven}, []int{0, 0, 0, 1, 1})
	b.do("XTRIM", b.k.Main, "MAXLEN", 0)
	b.equal("redriven anew", b.redrive(true, nil, Letter{EntryID: dead, ID: stable}), "moved *")
	_, got = b.only(b.k.Main)
	same("published anew", got)
	if m := wire.Parse("0-0", got); m.From != stable || m.ID != "0-0" {
		b.failf("published anew: %+v", m)
	}
}

// wideChecks: an entry over 3,900 fields cannot be passed on field by field; its end is one packed field.
var wideChecks = []check{
	{"too wide: every way out", func(b *bench) {
		fields := wide(3901)
		for i, s := range []Settlement{
			{Verb: Fail, Limit: 5, Error: "e"},
			{Verb: Fail, Limit: 0, Error: "e"},
			{Verb: Snooze, Delay: time.Second},
			{Verb: Release},
			{Verb: Cut, Limit: 5},
			{Verb: Cut, Limit: 0},
			{Verb: Bury, Reason: "rejected", Error: "e"},
		} {
			for _, src := range []string{Main, Retry} {
				b.do("DEL", b.k.Main, b.k.Retry, b.k.DLQ)
				b.given("main: 1-0 body=n\nmain @g: at 1-0\nmain @g c: 1-0\nretry @g: at 0-0")
				stream := map[string]string{Main: b.k.Main, Retry: b.k.Retry}[src]
				b.add(stream, "5-0", fields...)
				b.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", stream, ">")
				s.Source, s.EntryID = src, "5-0"
				b.equal(fmt.Sprint(i, src, s.Verb), b.settle("c", s, Settlement{Verb: Ack, Source: Main, EntryID: "1-0"}), "dead too-wide * ; acked")
				b.packed(fields, "5-0")
			}
		}
	}},
	{"too wide: acked like any other", func(b *bench) {
		b.given("main @g: at 0-0")
		b.add(b.k.Main, "5-0", wide(7000)...)
		b.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", b.k.Main, ">")
		b.equal("ack", b.settle("c", Settlement{Verb: Ack, Source: Main, EntryID: "5-0"}), "acked")
	}},
	{"too wide: far beyond what can be unpacked", func(b *bench) {
		b.given("main @g: at 0-0")
		fields := wide(12_000)
		b.add(b.k.Main, "5-0", fields...)
		b.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", b.k.Main, ">")
		b.equal("fail", b.settle("c", Settlement{Verb: Fail, Source: Main, EntryID: "5-0", Limit: 5, Error: "e"}), "dead too-wide *")
		b.packed(fields, "5-0")
	}},
	{"too wide: given back after it was deleted", func(b *bench) {
		b.given("main @g: at 0-0")
		fields := wide(5000)
		b.add(b.k.Main, "5-0", fields...)
		b.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", b.k.Main, ">")
		b.do("XDEL", b.k.Main, "5-0")
		b.equal("fail", b.settle("c", Settlement{Verb: Fail, Source: Main, EntryID: "5-0", Limit: 5, Error: "e", Packed: wire.Pack(fields)}), "dead too-wide *")
		b.packed(fields, "5-0")
	}},
	{"too wide: reclaimed, its neighbours too", func(b *bench) {
		b.given("main: 4-0 body=n\nmain @g: at 0-0\nworkers: c = 1000|T|v|dead|")
		fields := append(wide(3900), "lost", "1")
		b.add(b.k.Main, "5-0", fields...)
		b.add(b.k.Main, "6-0", "body", "o")
		b.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", b.k.Main, ">")
		b.equal("reclaim", b.reclaim("c", 9), "moved=3 ; dead too-wide * 5-0")
		b.packed(fields, "5-0")
		b.equal("waiting", b.c.XLen(b.ctx, b.k.Retry).Val(), 2)
	}},
	{"too wide: reclaimed for the last time", func(b *bench) {
		b.given("main @g: at 0-0\nworkers: c = 1000|T|v|dead|")
		fields := wide(3901)
		b.add(b.k.Main, "5-0", fields...)
		b.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", b.k.Main, ">")
		b.equal("reclaim", b.reclaim("c", 0), "moved=1 ; dead too-wide * 5-0")
		b.packed(fields, "5-0")
	}},
	{"too wide: grown by our own fields, still moved", func(b *bench) {
		b.given("main @g: at 0-0\nretry @g: at 0-0\nworkers: c = 1000|T|v|live|")
		fields := wide(3900)
		b.add(b.k.Main, "5-0", fields...)
		b.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", b.k.Main, ">")
		b.equal("fail", b.settle("c", Settlement{Verb: Fail, Source: Main, EntryID: "5-0", Limit: 5, Error: "e"}), "parked m/5-0")
		b.equal("promote", b.promote(false), "moved=1")
		id, got := b.only(b.k.Retry)
		if !slices.Equal(travelling(got), fields) {
			b.failf("%s after a failure", showFields(got))
		}
		b.do("XREADGROUP", "GROUP", "g", "c", "STREAMS", b.k.Retry, ">")
		b.equal("once more", b.settle("c", Settlement{Verb: Fail, Source: Retry, EntryID: id, Limit: 5, Error: "e"}), "dead too-wide *")
		b.packed(got, "5-0")
	}},
}

// packed holds the one dead letter against the fields that went into it.
func (b *bench) packed(fields []string, stable string) {
	id, got := b.only(b.k.DLQ)
	if got[0] != wire.Packed || len(got) > 20 {
		b.fatalf("the dead letter is %s", showFields(got))
	}
	kept, err := wire.Unpack(got[1])
	b.must(err)
	if !slices.Equal(kept, fields) {
		b.failf("packed: %s, want %s", showFields(kept), showFields(fields))
	}
	if m := wire.Parse(id, got); m.Reason != "too-wide" || m.ID != stable {
		b.failf("the dead letter says %q, stable id %q", m.Reason, m.ID)
	}
}
