package lua

import (
	"fmt"
	"strings"
	"time"
)

var tickChecks = []check{
	{"tick: states of the group", func(b *bench) {
		b.given("gmeta: swept = T")
		b.then(b.tick(""), "none no-stream", "")
		b.given("main: 1-0 body=a")
		b.then(b.tick(""), "none no-group", "")
		b.given("groups: g = x|T-5")
		b.then(b.tick(""), "none removed", "")
		b.do("DEL", b.k.Groups)
		b.given("main @g: at 1-0")
		b.then(b.tick(""), "none no-retry", "")
		b.given("retry: 1-0 body=a")
		b.then(b.tick(""), "none no-retry", "")
		b.given("retry @g: at 0-0")
		b.then(b.tick(""), "none ok", "")
		b.do("DEL", b.k.Main)
		b.last = b.state()
		b.then(b.tick(""), "none no-stream", "")
	}},
	{"tick: what is due, paused, compacted", func(b *bench) {
		b.given(`main @g: at 0-0
			retry @g: at 0-0
			gmeta: swept = T
			due: a = T
			due: b = T-1
			due: c = T+1
			parked: a = body=a
			parked: b = body=b
			parked: c = body=c
			sdue: d = T
			sdue: e = T+1
			sparked: d = body=d
			sparked: e = body=e
			meta: compacted = T-700
			paused = "a b"`)
		b.then(b.tick(""), "none ok paused=a b due=2 delayed=1 compacted=T-700", "")
		b.at(1)
		b.then(b.tick(""), "none ok paused=a b due=3 delayed=2 compacted=T-700", "")
	}},
	{"tick: a set and its hash that disagree count as due", func(b *bench) {
		b.given("gmeta: swept = T\nparked: m/1-0 = body=a\nsparked: m/1-0 = body=a\nsdue: m/1-0 = T+5\nsdue: m/2-0 = T+6")
		b.then(b.tick(""), "none no-stream due=1 delayed=1", "")
		b.given("due: m/1-0 = T+5\nsparked: m/2-0 = body=b")
		b.then(b.tick(""), "none no-stream", "")
	}},
	{"tick: a pause flag and waiting keys of the wrong type stop nothing else", func(b *bench) {
		b.given(`gmeta: swept = T
			workers: c = 30000|T-99|v|live|
			paused: oops = 1
			due: oops = T+9
			parked = oops
			sdue = oops`)
		b.then(b.tick("c"), "ok no-stream due=1 delayed=1", "- workers: c = 30000|T-99|v|live|\n+ workers: c = 30000|T|v|live|")
	}},
	{"tick: heartbeats", func(b *bench) {
		b.given(`gmeta: swept = T
			workers: c = 30000|T-99|v|live|8-0
			workers: dead = 30000|T-99|v|dead|
			workers: foreign = 30000|T-99||foreign|`)
		b.then(b.tick("c"), "ok no-stream", "- workers: c = 30000|T-99|v|live|8-0\n+ workers: c = 30000|T|v|live|8-0")
		for _, c := range []string{"dead", "foreign", "missing"} {
			b.then(b.tick(c), "gone no-stream", "")
		}
	}},
	{"tick: totals", func(b *bench) {
		b.given("gmeta: swept = T\ngmeta: failed = many\ngmeta: processed = 5\nworkers: c = 30000|T-99|v|live|")
		b.then(b.tickAdd("c", Totals{Processed: 7, Failed: 2, Dead: 1}), "ok no-stream", `- workers: c = 30000|T-99|v|live|
			- gmeta: failed = many
			- gmeta: processed = 5
			+ workers: c = 30000|T|v|live|
			+ gmeta: dead = 1
			+ gmeta: failed = 2
			+ gmeta: processed = 12`)
		b.then(b.tickAdd("", Totals{}), "none no-stream", "")
		b.given("groups: g = x|T-5")
		b.then(b.tickAdd("", Totals{Processed: 1}), "none removed", "")
	}},
	{"tick: sweeps when it is due, once", func(b *bench) {
		b.given("gmeta: swept = T\ngmeta: minvis = 30000\nworkers: c = 30000|T|v|live|")
		b.at(799)
		b.then(b.tick(""), "none no-stream vis=30s", "")
		b.at(800)
		b.then(b.tick(""), "none no-stream vis=30s", "- gmeta: swept = T\n+ gmeta: swept = T+800")
		b.then(b.tick(""), "none no-stream vis=30s", "")
	}},
	{"tick: sweeps at least every quarter of the least visibility", func(b *bench) {
		b.given("gmeta: swept = T\ngmeta: minvis = 2000\nworkers: c = 2000|T|v|live|\nworkers: d = 60000|T|v|live|")
		b.at(399)
		b.then(b.tick(""), "none no-stream vis=2s", "")
		b.at(400)
		b.then(b.tick(""), "none no-stream vis=2s", "- gmeta: swept = T\n+ gmeta: swept = T+400")
	}},
	{"tick: the least visibility is found afresh", func(b *bench) {
		b.given("gmeta: swept = T\ngmeta: minvis = 2000\nworkers: c = 30000|T|v|live|\nworkers: d = 1000|T|v|dead|\nworkers: e = 1000|T||foreign|")
		b.at(500)
		b.then(b.tick(""), "none no-stream vis=30s dead=d", "- gmeta: minvis = 2000\n- gmeta: swept = T\n+ gmeta: minvis = 30000\n+ gmeta: swept = T+500")
		b.do("DEL", b.k.Workers)
		b.last = b.state()
		b.at(1500)
		b.then(b.tick(""), "none no-stream", "- gmeta: minvis = 30000\n- gmeta: swept = T+500\n+ gmeta: swept = T+1500")
	}},
	{"tick: dead only past visibility and grace, the owner's own", func(b *bench) {
		const before = `workers: deaf = 1000|T-1100|v|live|
			workers: deafer = 1000|T-1101|v|live|
			workers: long = 60000|T-62000|v|live|
			workers: longer = 60000|T-62001|v|live|
			workers: mid = 5000|T-5500|v|live|
			workers: middle = 5000|T-5501|v|live|`
		b.given(before + "\ngmeta: swept = T-700\ngmeta: minvis = 1000\nmain @g: at 0-0\nretry @g: at 0-0\ngroups: g = 0-0|T-9")
		b.then(b.tick(""), "none ok vis=1s dead=deafer,longer,middle", `- workers: deafer = 1000|T-1101|v|live|
			- workers: longer = 60000|T-62001|v|live|
			- workers: middle = 5000|T-5501|v|live|
			- gmeta: swept = T-700
			+ workers: deafer = 1000|T-1101|v|dead|
			+ workers: longer = 60000|T-62001|v|dead|
			+ workers: middle = 5000|T-5501|v|dead|
			+ gmeta: swept = T`)
	}},
	{"tick: a sweeper with a short visibility takes nobody's life", func(b *bench) {
		b.given(`workers: long = 60000|T-30000|v|live|
			workers: short = 1000|T-100|v|live|
			gmeta: swept = T-500
			gmeta: minvis = 1000`)
		b.then(b.tick("short"), "ok no-stream vis=1s", `- workers: short = 1000|T-100|v|live|
			- gmeta: swept = T-500
			+ workers: short = 1000|T|v|live|
			+ gmeta: swept = T`)
	}},
	{"tick: a gap forward is credited, less one interval", func(b *bench) {
		b.given(`workers: live = 1000|T-10500|v|live|
			workers: old = 1000|T-20000|v|live|
			workers: dead = 1000|T-20000|v|dead|
			workers: strange = 1000|T-10500||foreign|
			gmeta: swept = T-10000
			gmeta: minvis = 1000`)
		b.then(b.tick(""), "none no-stream vis=1s dead=dead,old", `- workers: live = 1000|T-10500|v|live|
			- workers: old = 1000|T-20000|v|live|
			- workers: strange = 1000|T-10500||foreign|
			- gmeta: swept = T-10000
			+ workers: live = 1000|T-750|v|live|
			+ workers: old = 1000|T-10250|v|dead|
			+ workers: strange = 1000|T-750||foreign|
			+ gmeta: swept = T`)
		b.at(250)
		b.then(b.tick(""), "none no-stream vis=1s dead=dead,old", "- gmeta: swept = T\n+ gmeta: swept = T+250")
		b.at(351)
		b.then(b.tick(""), "none no-stream vis=1s", "")
		b.at(450)
		b.then(b.tick(""), "none no-stream vis=1s dead=dead,live,old,strange", `- workers: live = 1000|T-750|v|live|
			- workers: strange = 1000|T-750||foreign|
			- gmeta: swept = T+250
			+ workers: live = 1000|T-750|v|dead|
			+ workers: strange = 1000|T-750||dead|
			+ gmeta: swept = T+450`)
	}},
	{"tick: stalls that come again and again do not stop reclaim", func(b *bench) {
		b.given("workers: c = 2000|T|v|live|\ngmeta: swept = T\ngmeta: minvis = 2000")
		sweeps := 0
		for at := int64(10_000); ; at += 10_000 { // each gap ages everyone by one interval, of half a second
			b.at(at)
			sweeps++
			if strings.Contains(b.tick(""), "dead=c") {
				break
			}
			if sweeps > 20 {
				b.fatalf("a consumer silent over 20 sweeps of half a second lives on")
			}
		}
		b.equal("dead after so many sweeps", sweeps, 5)
	}},
	{"tick: three intervals are no gap", func(b *bench) {
		b.given("workers: c = 1000|T-2000|v|live|\ngmeta: swept = T-750\ngmeta: minvis = 1000")
		b.then(b.tick(""), "none no-stream vis=1s dead=c", `- workers: c = 1000|T-2000|v|live|
			- gmeta: swept = T-750
			+ workers: c = 1000|T-2000|v|dead|
			+ gmeta: swept = T`)
	}},
	{"tick: a clock set back moves heartbeats back", func(b *bench) {
		b.given(`workers: c = 1000|T+9900|v|live|
			workers: d = 1000|T+9000|v|live|
			gmeta: swept = T+10000
			gmeta: minvis = 1000`)
		b.then(b.tick(""), "none no-stream vis=1s", `- workers: c = 1000|T+9900|v|live|
			- workers: d = 1000|T+9000|v|live|
			- gmeta: swept = T+10000
			+ workers: c = 1000|T-100|v|live|
			+ workers: d = 1000|T-1000|v|live|
			+ gmeta: swept = T`)
		b.at(250)
		b.then(b.tick(""), "none no-stream vis=1s dead=d", `- workers: d = 1000|T-1000|v|live|
			- gmeta: swept = T
			+ workers: d = 1000|T-1000|v|dead|
			+ gmeta: swept = T+250`)
	}},
	{"tick: a heartbeat since the clock was set back is not moved", func(b *bench) {
		b.given("workers: before = 1000|T+9900|v|live|\nworkers: since = 1000|T-100|v|live|\ngmeta: swept = T+10000\ngmeta: minvis = 1000")
		b.then(b.tick(""), "none no-stream vis=1s", `- workers: before = 1000|T+9900|v|live|
			- gmeta: swept = T+10000
			+ workers: before = 1000|T-100|v|live|
			+ gmeta: swept = T`)
	}},
	{"tick: a clock set back a little leaves no heartbeat in the future", func(b *bench) {
		b.given("workers: c = 1000|T+600|v|live|\nworkers: d = 1000|T-500|v|live|\ngmeta: swept = T+700\ngmeta: minvis = 1000")
		b.then(b.tick(""), "none no-stream vis=1s", `- workers: c = 1000|T+600|v|live|
			- gmeta: swept = T+700
			+ workers: c = 1000|T|v|live|
			+ gmeta: swept = T`)
	}},
	{"tick: the first sweep, or one whose time was lost, marks nobody", func(b *bench) {
		b.given("workers: c = 1000|T-99000|v|live|\nworkers: d = 1000|T-99000|v|dead|")
		b.then(b.tick(""), "none no-stream vis=1s dead=d", `- workers: c = 1000|T-99000|v|live|
			+ workers: c = 1000|T|v|live|
			+ gmeta: minvis = 1000
			+ gmeta: swept = T`)
	}},
	{"tick: unknown owners are entered and die of age", func(b *bench) {
		b.given(`main: 1-0 body=a
			main @g: at 1-0
			main @g stray: 1-0
			retry: 2-0 body=a
			retry @g: at 2-0
			retry @g other: 2-0
			groups: g = 0-0|T-9
			workers: c = 4000|T|v|live|
			gmeta: swept = T-1000
			gmeta: maxvis = 4000
			gmeta: minvis = 4000`)
		b.then(b.tick("c"), "ok ok vis=4s", `- gmeta: swept = T-1000
			- groups: g = 0-0|T-9
			+ workers: other = 4000|T||foreign|
			+ workers: stray = 4000|T||foreign|
			+ groups: g = 0-18446744073709551615|T-9
			+ gmeta: swept = T`)
	}},
	{"tick: an unknown owner may have the largest visibility ever registered", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 1-0\nmain @g long: 1-0\nretry @g: at 0-0\ngroups: g = 0-18446744073709551615|T-9\ngmeta: swept = T")
		b.register("long", time.Minute)
		b.do("DEL", b.k.Workers) // the hash is lost; a worker with a short visibility comes up
		b.register("short", time.Second)
		b.last = b.state()
		step := func(at int64) string {
			b.at(at)
			return b.tick("short")
		}
		b.equal("entered", step(250), "ok ok vis=1s")
		b.equal("the unknown owner's record", b.do("HGET", b.k.Workers, "long"), fmt.Sprintf("60000|%d||foreign|", epoch+250))
		for at := int64(500); at < 62_250; at += 250 {
			if got := step(at); got != "ok ok vis=1s" {
				b.fatalf("after %d ms: %s", at, got)
			}
		}
		b.equal("after its visibility and grace", step(62_500), "ok ok vis=1s dead=long")
	}},
	{"tick: an unknown owner without any registered visibility gets a minute", func(b *bench) {
		b.given("main: 1-0 body=a\nmain @g: at 1-0\nmain @g stray: 1-0\nretry @g: at 0-0\ngroups: g = 0-18446744073709551615|T-9\ngmeta: swept = T-1000")
		b.then(b.tick(""), "none ok", "- gmeta: swept = T-1000\n+ workers: stray = 60000|T||foreign|\n+ gmeta: swept = T")
	}},
	{"tick: a dead owner's only entry, in the retry stream, is named", func(b *bench) {
		b.given(`main: 1-0 body=a
			main @g: at 1-0
			main @g both: 1-0
			retry: 2-0 body=a
			retry: 3-0 body=a
			retry: 4-0 body=a
			retry: 5-0 body=a
			retry @g: at 5-0
			retry @g only: 2-0
			retry @g two: 3-0 4-0
			retry @g both: 5-0
			groups: g = 0-18446744073709551615|T-9
			workers: only = 1000|T-9000|v|live|
			workers: two = 1000|T-9000|v|live|
			workers: both = 1000|T-9000|v|live|
			workers: none = 1000|T-9000|v|live|
			gmeta: swept = T-700
			gmeta: minvis = 1000`)
		b.then(b.tick(""), "none ok vis=1s dead=both,none,only,two", `- workers: both = 1000|T-9000|v|live|
			- workers: none = 1000|T-9000|v|live|
			- workers: only = 1000|T-9000|v|live|
			- workers: two = 1000|T-9000|v|live|
			- gmeta: swept = T-700
			+ workers: both = 1000|T-9000|v|dead|
			+ workers: none = 1000|T-9000|v|dead|
			+ workers: only = 1000|T-9000|v|dead|2-0
			+ workers: two = 1000|T-9000|v|dead|
			+ gmeta: swept = T`)
	}},
	{"tick: the suspect a consumer named stays named", func(b *bench) {
		b.given(`main: 1-0 body=a
			main @g: at 1-0
			main @g c: 1-0
			retry: 2-0 body=a
			retry @g: at 2-0
			retry @g c: 2-0
			groups: g = 0-18446744073709551615|T-9
			workers: c = 1000|T-9000|v|live|2-0
			gmeta: swept = T-700
			gmeta: minvis = 1000`)
		b.then(b.tick(""), "none ok vis=1s dead=c", `- workers: c = 1000|T-9000|v|live|2-0
			- gmeta: swept = T-700
			+ workers: c = 1000|T-9000|v|dead|2-0
			+ gmeta: swept = T`)
	}},
	{"tick: marks and names a bounded number of owners", func(b *bench) {
		b.given("gmeta: swept = T-500")
		args := []any{"HSET", b.k.Workers}
		for i := range 250 {
			args = append(args, fmt.Sprint("c", i), fmt.Sprintf("1000|%d|v|live|", epoch-9000))
		}
		b.do(args...)
		at := int64(0)
		for want := 100; want <= 300; want += 100 {
			b.at(at)
			l, err := Tick(b.ctx, b.r, b.k, "", 250*time.Millisecond, Totals{})
			b.must(err)
			b.equal("names", len(l.Dead), 20)
			dead := 0
			for _, v := range b.c.HVals(b.ctx, b.k.Workers).Val() {
				if strings.Contains(v, "|dead|") {
					dead++
				}
			}
			b.equal("marked", dead, min(want, 250))
			at += 250
		}
	}},
	{"tick: names each of many dead owners before long", func(b *bench) {
		b.given("gmeta: swept = T-1000")
		args := []any{"HSET", b.k.Workers}
		for i := range 130 {
			args = append(args, fmt.Sprint("c", i), fmt.Sprintf("1000|%d|v|dead|", epoch-9000))
		}
		b.do(args...)
		named := map[string]int{}
		for i := range int64(50) {
			b.at(i * 1003)
			l, err := Tick(b.ctx, b.r, b.k, "", time.Second, Totals{})
			b.must(err)
			once := map[string]bool{}
			for _, name := range l.Dead {
				once[name] = true
				named[name]++
			}
			b.equal("different names", len(once), 20)
		}
		b.equal("named", len(named), 130)
	}},
	{"tick: records the position that loses nothing", func(b *bench) {
		b.given(`main: 3-0 body=a
			main: 5-0 body=b
			main @g: at 5-0
			retry @g: at 0-0
			groups: g = 0-0|T-70
			groups: h = 0-0|T-70
			gmeta: swept = T-1000`)
		b.then(b.tick(""), "none ok", "- groups: g = 0-0|T-70\n- gmeta: swept = T-1000\n+ groups: g = 5-0|T-70\n+ gmeta: swept = T")
		b.do("XCLAIM", b.k.Main, "g", "c", 0, "3-0", "FORCE", "JUSTID")
		b.do("HSET", b.k.Workers, "c", fmt.Sprintf("30000|%d|v|live|", epoch))
		b.last = b.state()
		b.at(1000)
		b.then(b.tick(""), "none ok vis=30s", "- groups: g = 5-0|T-70\n- gmeta: swept = T\n"+
			"+ groups: g = 2-18446744073709551615|T-70\n+ gmeta: minvis = 30000\n+ gmeta: swept = T+1000")
	}},
	{"tick: a group that nobody recorded is recorded", func(b *bench) {
		b.given("main: 5-7 body=a\nmain @g: at 5-7\nretry @g: at 0-0\ngmeta: swept = T-1000")
		b.then(b.tick(""), "none ok", "- gmeta: swept = T-1000\n+ groups: g = 5-7|T\n+ gmeta: swept = T")
	}},
	{"tick: a vanished group keeps its record", func(b *bench) {
		b.given("main: 5-7 body=a\ngroups: g = 3-0|T-70\ngmeta: swept = T-1000")
		b.then(b.tick(""), "none no-group", "- gmeta: swept = T-1000\n+ gmeta: swept = T")
	}},
}
