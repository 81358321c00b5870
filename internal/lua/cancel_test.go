package lua

import (
	"fmt"
	"strings"
)

func (b *bench) cancel(id, dedupe string) string {
	return word(Cancel(b.ctx, b.r, b.k.Stream, id, dedupe))
}

// find walks to the end, or to what it looks for, and counts its steps.
func (b *bench) find(id string, most int) string {
	next := ""
	for steps := 1; ; steps++ {
		name, to, err := FindParked(b.ctx, b.r, b.k.Parked, id, next, "*", most)
		if err != nil {
			return "error " + err.Error()
		}
		if name != "" || to == "" {
			return strings.TrimSpace(fmt.Sprint(name, " after ", steps))
		}
		if steps > 1000 {
			b.fatalf("no end")
		}
		next = to
	}
}

var cancelChecks = []check{
	{"cancel: a delayed message and its marker", func(b *bench) {
		b.given(`sparked: d-7-aa = body=a did=k
			sparked: d-7-ab = body=b did=l
			sparked: d-7-ac = body=c
			sdue: d-7-aa = T+5
			sdue: d-7-ab = T+5
			sdue: d-7-ac = T+5
			sent k = d-7-aa
			sent l = 7-7`)
		b.then(b.cancel("d-7-aa", "k"), "true", "- sparked: d-7-aa = body=a did=k\n- sdue: d-7-aa = T+5\n- sent k = d-7-aa")
		b.then(b.cancel("d-7-aa", "k"), "false", "")
		b.then(b.cancel("d-7-ab", "l"), "true", "- sparked: d-7-ab = body=b did=l\n- sdue: d-7-ab = T+5")
		b.then(b.cancel("d-7-ac", ""), "true", "- sparked: d-7-ac = body=c\n- sdue: d-7-ac = T+5")
	}},
	{"cancel: one that is promoted already, one half there", func(b *bench) {
		b.given("sdue: d-7-aa = T+5\nsent k = d-7-aa")
		b.then(b.cancel("d-7-aa", "k"), "false", "- sdue: d-7-aa = T+5")
		b.do("HSET", b.k.Sent("x"), "f", "v")
		b.given("sparked: d-7-ab = body=b")
		b.then(b.cancel("d-7-ab", "x"), "true", "- sparked: d-7-ab = body=b")
	}},
	{"cancel: the wrong type", func(b *bench) {
		b.given("sparked = oops")
		if got := b.cancel("d-1-0a", ""); !strings.Contains(got, "WRONGTYPE") {
			b.failf("%s", got)
		}
	}},
	{"find: by the stable id, in parked values", func(b *bench) {
		b.given(`parked: m/5-0 = body="3:oid,3:1-0," oid=5-0
			parked: m/6-0 = body=a oid=1-0 err=e
			parked: m/7-0 = raw "3:oid,3:7-7,"`)
		for id, want := range map[string]string{"1-0": "m/6-0 after 1", "5-0": "m/5-0 after 1", "7-7": "after 1", "6-0": "after 1"} {
			b.equal(id, b.find(id, 100), want)
		}
		b.do("DEL", b.k.Parked)
		b.park(b.k.Due, b.k.Parked, 2000, "\x014:body,1:a,3:oid,1:x,")
		b.do("HSET", b.k.Parked, "m/last", "\x014:body,1:a,3:oid,1:y,")
		if got := b.find("y", 100); !strings.HasPrefix(got, "m/last after") {
			b.failf("%s", got)
		}
		if got := b.find("z", 100); got < "after 10" {
			b.failf("2,000 values looked at in one step: %s", got)
		}
	}},
	{"find: among the parked values whose names match", func(b *bench) {
		b.given("parked: m/1-0 = body=a oid=9-0\nparked: r/2-0 = body=b oid=9-0\nparked: x/3-0 = body=c oid=9-1")
		for _, c := range [][2]string{{"[rx]/*", "r/2-0"}, {"x/*", ""}, {"m/*", "m/1-0"}} {
			member, _, err := FindParked(b.ctx, b.r, b.k.Parked, "9-0", "", c[0], 100)
			b.must(err)
			b.equal(c[0], member, c[1])
		}
	}},
	{"find: bounded in bytes", func(b *bench) {
		b.given("")
		for i := range 32 {
			b.do("HSET", b.k.Parked, fmt.Sprintf("m/%d-0", i), "\x014:body,262144:"+strings.Repeat("x", 256<<10)+",")
		}
		steps := 0
		_, err := fmt.Sscanf(b.find("x", 100), "after %d", &steps)
		b.must(err)
		if steps < 3 { // HSCAN may answer eight at once: Valkey's buckets hold so many
			b.failf("%d scripts looked at 32 values of 256 KiB", steps)
		}
	}},
	{"find: the wrong type", func(b *bench) {
		b.given("parked = oops")
		if got := b.find("x", 9); !strings.Contains(got, "WRONGTYPE") {
			b.failf("%s", got)
		}
	}},
}
