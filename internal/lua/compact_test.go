package lua

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

func (b *bench) compact(dry, now bool) string {
	got, err := Compact(b.ctx, b.r, b.k.Stream, dry, now)
	if err != nil {
		return "error " + err.Error()
	}
	out := fmt.Sprint(got.State, " removed=", got.Removed)
	if got.Floor != "" {
		out += " floor=" + got.Floor
	}
	if got.More {
		out += " more"
	}
	if len(got.HeldBy) > 0 {
		out += " by " + strings.Join(got.HeldBy, ",")
	}
	return moments(out)
}

// compactable is a stream of five with two groups, g of ours and a foreign one, made long ago.
const compactable = `main: 1-0 body=a
	main: 2-0 body=b
	main: 3-0 body=c
	main: 4-0 body=d
	main: 5-0 body=e
	groups: g = 0-0|T-300000
	groups: removed = x|T-1
`

var compactChecks = []check{
	{"compact: nothing to compact", func(b *bench) {
		b.given("")
		b.then(b.compact(false, false), "none removed=0", "")
		b.given("main: 1-0 body=a")
		b.then(b.compact(false, false), "none removed=0", "")
	}},
	{"compact: all that every group is done with", func(b *bench) {
		b.given(compactable + "main @g: at 5-0\nmain @foreign: at 3-0")
		b.then(b.compact(true, false), "ok removed=0 floor=3-1 more by foreign", "")
		b.then(b.compact(false, false), "ok removed=3 floor=3-1 by foreign",
			"- main: 1-0 body=a\n- main: 2-0 body=b\n- main: 3-0 body=c\n+ meta: compacted = T")
		b.then(b.compact(true, false), "ok removed=0 floor=3-1 by foreign", "")
		b.at(7)
		b.then(b.compact(false, false), "ok removed=0 floor=3-1 by foreign", "- meta: compacted = T\n+ meta: compacted = T+7")
	}},
	{"compact: a foreign group that never read holds all", func(b *bench) {
		b.given(compactable + "main @g: at 5-0\nmain @slow: at 0-0")
		b.then(b.compact(false, false), "ok removed=0 floor=0-1 by slow", "+ meta: compacted = T")
	}},
	{"compact: the oldest pending entry holds what is above it", func(b *bench) {
		b.given(compactable + "main @g: at 3-0\nmain @g c: 2-0")
		b.then(b.compact(false, false), "ok removed=2 floor=2-0 by g", "- main: 1-0 body=a\n- main: 3-0 body=c\n+ meta: compacted = T\n+ meta: cursor = 2-0")
	}},
	{"compact: pending for all that was read, some unread", func(b *bench) {
		b.given(compactable + "main @g: at 2-0\nmain @g c: 1-0 2-0\nmain @h: at 2-0")
		b.then(b.compact(false, false), "ok removed=0 floor=1-0 by g", "+ meta: compacted = T\n+ meta: cursor = 1-0")
	}},
	{"compact: nothing pending, the successor of the last delivered holds", func(b *bench) {
		b.given(compactable + "main @g: at 4-0\nmain @h: at 5-0\nmain @h c: 5-0")
		b.then(b.compact(false, false), "ok removed=4 floor=4-1 by g",
			"- main: 1-0 body=a\n- main: 2-0 body=b\n- main: 3-0 body=c\n- main: 4-0 body=d\n+ meta: compacted = T")
	}},
	{"compact: a group that was moved back under what it has pending", func(b *bench) {
		b.given(compactable + "main @g: at 1-0\nmain @g c: 4-0\nmain @h: at 5-0")
		b.then(b.compact(false, false), "ok removed=1 floor=1-1 by g", "- main: 1-0 body=a\n+ meta: compacted = T")
	}},
	{"compact: above a pinned floor only what no group needs", func(b *bench) {
		b.given(compactable + "main @g: at 5-0\nmain @g c: 1-0 3-0\nmain @h: at 4-0\nmain @h c: 2-0")
		b.then(b.compact(false, false), "ok removed=1 floor=1-0 by g", "- main: 4-0 body=d\n+ meta: compacted = T\n+ meta: cursor = 1-0")
	}},
	{"compact: a recorded group that is missing holds all", func(b *bench) {
		b.given(compactable + "main @g: at 5-0\ngroups: lost = 3-0|T-300000")
		b.then(b.compact(false, false), "missing removed=0 by lost", "+ meta: compacted = T")
		b.then(b.compact(false, true), "missing removed=0 by lost", "")
		b.then(b.compact(true, true), "missing removed=0 by lost", "")
	}},
	{"compact: what was read after one look is not trimmed by the next", func(b *bench) {
		b.given(compactable + "main @g: at 5-0\nmain @h: at 5-0")
		b.then(b.compact(true, false), "ok removed=0 floor=5-1 more by g,h", "")
		b.do("XGROUP", "SETID", b.k.Main, "h", "2-0")
		b.last = b.state()
		b.then(b.compact(false, false), "ok removed=2 floor=2-1 by h", "- main: 1-0 body=a\n- main: 2-0 body=b\n+ meta: compacted = T")
	}},
	{"compact: not soon after a group was made", func(b *bench) {
		b.given(compactable + "main @g: at 5-0\ngroups: g = 0-0|T-299999")
		b.then(b.compact(true, false), "young removed=0", "")
		b.then(b.compact(false, false), "young removed=0", "+ meta: compacted = T")
		b.then(b.compact(true, true), "ok removed=0 floor=5-1 more by g", "")
		b.then(b.compact(false, true), "ok removed=5 floor=5-1 by g", `- main: 1-0 body=a
			- main: 2-0 body=b
			- main: 3-0 body=c
			- main: 4-0 body=d
			- main: 5-0 body=e`)
		b.at(1)
		b.then(b.compact(false, false), "ok removed=0 floor=5-1 by g", "- meta: compacted = T\n+ meta: compacted = T+1")
	}},
	{"compact: made by a clock that was set back since", func(b *bench) {
		b.given(compactable + "main @g: at 5-0\ngroups: g = 0-0|T+299999")
		b.then(b.compact(false, false), "young removed=0", "+ meta: compacted = T")
		b.given("groups: g = 0-0|T+300000")
		b.then(b.compact(true, false), "ok removed=0 floor=5-1 more by g", "")
	}},
	{"compact: soon after all, when there is much", func(b *bench) {
		b.given("groups: g = 0-0|T-5")
		for from := 0; from < 100_000; from += 10_000 {
			_, err := b.c.Pipelined(b.ctx, func(p redis.Pipeliner) error {
				for i := range 10_000 {
					p.Do(b.ctx, "XADD", b.k.Main, fmt.Sprintf("%d-0", from+i+1), "b", "")
				}
				return nil
			})
			b.must(err)
		}
		b.do("XGROUP", "CREATE", b.k.Main, "g", "$")
		b.do("XDEL", b.k.Main, "100000-0")
		b.equal("below", b.compact(false, false), "young removed=0")
		b.add(b.k.Main, "100001-0", "b", "")
		got := b.compact(false, false)
		if !strings.HasPrefix(got, "ok removed=") || !strings.Contains(got, "more by g") {
			b.failf("at 100,000 entries: %s", got)
		}
	}},
	{"compact: in bounded steps to the end", func(b *bench) {
		b.given("groups: g = 0-0|T-300000")
		_, err := b.c.Pipelined(b.ctx, func(p redis.Pipeliner) error {
			for i := range 9_000 {
				p.Do(b.ctx, "XADD", b.k.Main, fmt.Sprintf("%d-0", i+1), "b", "")
			}
			return nil
		})
		b.must(err)
		b.do("XGROUP", "CREATE", b.k.Main, "g", "8990-0")
		for step := 1; ; step++ {
			got, err := Compact(b.ctx, b.r, b.k.Stream, false, false)
			b.must(err)
			if got.Removed > 2200 {
				b.failf("%d in one step", got.Removed)
			}
			if !got.More {
				if step < 5 {
					b.failf("done after %d steps", step)
				}
				break
			}
			if step > 20 {
				b.fatalf("no end")
			}
		}
		b.equal("left", b.c.XLen(b.ctx, b.k.Main).Val(), 10)
	}},
	{"compact: above a pinned floor in bounded steps to the end", func(b *bench) {
		b.given("groups: g = 0-0|T-300000")
		_, err := b.c.Pipelined(b.ctx, func(p redis.Pipeliner) error {
			for i := range 1_000 {
				p.Do(b.ctx, "XADD", b.k.Main, fmt.Sprintf("%d-0", i+1), "b", "")
			}
			return nil
		})
		b.must(err)
		b.do("XGROUP", "CREATE", b.k.Main, "g", "990-0")
		claim := []any{"XCLAIM", b.k.Main, "g", "c", 0, "500-0"}
		for i := range 150 { // more than one step looks at
			claim = append(claim, fmt.Sprintf("%d-0", i+1))
		}
		b.do(append(claim, "FORCE", "JUSTID")...)
		for step := 1; ; step++ {
			got, err := Compact(b.ctx, b.r, b.k.Stream, false, false)
			b.must(err)
			if got.Removed > 100 {
				b.failf("%d in one step", got.Removed)
			}
			if !got.More {
				break
			}
			if step > 20 {
				b.fatalf("no end")
			}
		}
		b.equal("left", b.c.XLen(b.ctx, b.k.Main).Val(), 150+1+10)
	}},
	{"compact: a large walk above a pinned floor is not begun again at once", func(b *bench) {
		b.given("groups: g = 0-0|T-300000")
		_, err := b.c.Pipelined(b.ctx, func(p redis.Pipeliner) error {
			for i := range 1_200 {
				p.Do(b.ctx, "XADD", b.k.Main, fmt.Sprintf("%d-0", i+1), "b", "")
			}
			return nil
		})
		b.must(err)
		b.do("XGROUP", "CREATE", b.k.Main, "g", "1200-0")
		claim := []any{"XCLAIM", b.k.Main, "g", "c", 0}
		for i := range 1_200 {
			claim = append(claim, fmt.Sprintf("%d-0", i+1))
		}
		b.do(append(claim, "FORCE", "JUSTID")...)
		walk := func(what string, now bool, want int64) {
			var removed int64
			for again := true; again; {
				got, err := Compact(b.ctx, b.r, b.k.Stream, false, now)
				b.must(err)
				removed, again = removed+got.Removed, got.More
			}
			b.equal(what, removed, want)
		}
		acked := 1
		ack := func(n int) { // from the second on: the first pins the floor
			for range n {
				acked++
				b.do("XACK", b.k.Main, "g", fmt.Sprintf("%d-0", acked))
			}
		}
		walk("all are pending", false, 0)
		ack(1)
		walk("as much lies there as before", false, 0)
		walk("asked for by hand", true, 1)
		ack(1)
		walk("again", false, 0)
		b.at(600_000)
		walk("ten minutes later", false, 1)
		ack(1)
		for i := range 600 {
			b.add(b.k.Main, fmt.Sprintf("%d-0", 2000+i), "b", "")
		}
		b.do("XGROUP", "SETID", b.k.Main, "g", "3000-0")
		walk("with half as much more", false, 601)
	}},
	{"compact: a pinned floor with as many entries as a step looks at", func(b *bench) {
		b.given("groups: g = 0-0|T-300000")
		claim := []any{"XCLAIM", b.k.Main, "g", "c", 0}
		for i := range 100 {
			b.add(b.k.Main, fmt.Sprintf("%d-0", i+1), "b", "")
			claim = append(claim, fmt.Sprintf("%d-0", i+1))
		}
		b.do("XGROUP", "CREATE", b.k.Main, "g", "100-0")
		b.do(append(claim, "FORCE", "JUSTID")...)
		b.equal("one step is all", b.compact(false, false), "ok removed=0 floor=1-0 by g")
	}},
	{"compact: retention by time", func(b *bench) {
		b.given(`main: T-9000-0 body=a
			main: T-5001-7 body=b
			main: T-5000-0 body=c
			main: T-1-0 body=d
			main @g: at T-1-0
			groups: g = 0-0|T-300000
			meta: retain = 5000`)
		b.then(b.compact(false, false), "ok removed=2 floor=T-5000-0", "- main: T-9000-0 body=a\n- main: T-5001-7 body=b\n+ meta: compacted = T")
		b.at(1)
		b.then(b.compact(false, false), "ok removed=1 floor=T-4999-0", "- main: T-5000-0 body=c\n- meta: compacted = T\n+ meta: compacted = T+1")
	}},
	{"compact: retention does not let go what a group needs", func(b *bench) {
		b.given("main: T-9000-0 body=a\nmain: T-8000-0 body=b\nmain @g: at T-9000-0\ngroups: g = 0-0|T-300000\nmeta: retain = 5000")
		b.then(b.compact(false, false), "ok removed=1 floor=T-9000-1 by g", "- main: T-9000-0 body=a\n+ meta: compacted = T")
	}},
	{"compact: retention holds above a pinned floor too", func(b *bench) {
		b.given(`main: T-9000-0 body=a
			main: T-8000-0 body=b
			main: T-4000-0 body=c
			main @g: at T-4000-0
			main @g c: T-9000-0
			groups: g = 0-0|T-300000
			meta: retain = 5000`)
		b.then(b.compact(false, false), "ok removed=1 floor=T-9000-0 by g", "- main: T-8000-0 body=b\n+ meta: compacted = T\n+ meta: cursor = T-9000-0")
	}},
	{"compact: retention from before all time", func(b *bench) {
		b.given(`main: 0-5 body=a
			main: 1-0 body=b
			main: 2-0 body=c
			main @g: at 2-0
			main @g c: 1-0
			groups: g = 0-0|T-300000
			meta: retain = 1000000000000`)
		b.then(b.compact(true, false), "ok removed=0 floor=0-1", "")
		b.then(b.compact(false, false), "ok removed=0 floor=0-1", "+ meta: compacted = T")
		b.then(b.compact(false, false), "ok removed=0 floor=0-1", "")
	}},
	{"compact: for ever", func(b *bench) {
		b.given(compactable + "main @g: at 5-0\nmeta: retain = forever")
		b.then(b.compact(true, true), "forever removed=0", "")
		b.then(b.compact(false, true), "forever removed=0", "+ meta: compacted = T")
	}},
	{"compact: a deleted entry that is pending holds the floor only", func(b *bench) {
		b.given("main: 1-0 !\nmain: 2-0 body=b\nmain @g: at 2-0\nmain @g c: 1-0\ngroups: g = 0-0|T-300000")
		b.then(b.compact(false, false), "ok removed=1 floor=1-0 by g", "- main: 2-0 body=b\n+ meta: compacted = T\n+ meta: cursor = 1-0")
	}},
}
