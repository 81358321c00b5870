package lua

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

func word(ok bool, err error) string {
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprint(ok)
}

func (b *bench) register(consumer string, visibility time.Duration) string {
	return word(Register(b.ctx, b.r, b.k, consumer, visibility, "v"))
}

func (b *bench) heartbeat(consumer string) string { return word(Heartbeat(b.ctx, b.r, b.k, consumer)) }

func (b *bench) arm(consumer, id string) string { return word(Arm(b.ctx, b.r, b.k, consumer, id)) }

func (b *bench) remove(consumer string) string {
	held, err := Remove(b.ctx, b.r, b.k, consumer)
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprint(held)
}

// tick returns what a tick saw, without what is not worth saying.
func (b *bench) tick(consumer string) string { return b.tickAdd(consumer, Totals{}) }

func (b *bench) tickAdd(consumer string, add Totals) string {
	l, err := Tick(b.ctx, b.r, b.k, consumer, time.Second, add)
	b.must(err)
	out := []string{l.Beat, l.State}
	if l.LeastVisibility != 0 {
		out = append(out, "vis="+l.LeastVisibility.String())
	}
	if l.Paused != "" {
		out = append(out, "paused="+l.Paused)
	}
	if l.Due+l.Delayed > 0 {
		out = append(out, fmt.Sprintf("due=%d delayed=%d", l.Due, l.Delayed))
	}
	if !l.Compacted.IsZero() {
		out = append(out, fmt.Sprintf("compacted=T%+d", l.Compacted.UnixMilli()-epoch))
	}
	if len(l.Dead) > 0 {
		out = append(out, "dead="+strings.Join(slices.Sorted(slices.Values(l.Dead)), ","))
	}
	if got := b.do("GET", b.k.Main+".clock"); got != fmt.Sprint(l.Now.UnixMilli()) {
		b.failf("the tick's time is %v, the clock says %v", l.Now.UnixMilli(), got)
	}
	return strings.Join(out, " ")
}

var leaseChecks = []check{
	{"register: new and taken", func(b *bench) {
		b.given("")
		b.then(b.register("c", 30*time.Second), "true", `+ workers: c = 30000|T|v|live|
			+ gmeta: maxvis = 30000
			+ gmeta: minvis = 30000`)
		b.at(5)
		b.then(b.register("c", 30*time.Second), "false", "")
		b.then(b.register("d", 60*time.Second), "true", `- gmeta: maxvis = 30000
			+ workers: d = 60000|T+5|v|live|
			+ gmeta: maxvis = 60000`)
		b.then(b.register("e", 2*time.Second), "true", `- gmeta: minvis = 30000
			+ workers: e = 2000|T+5|v|live|
			+ gmeta: minvis = 2000`)
		b.then(b.register("f", 1_000_000*time.Hour), "true", `- gmeta: maxvis = 60000
			+ workers: f = 3600000000000|T+5|v|live|
			+ gmeta: maxvis = 3600000000000`)
	}},
	{"register: never over a record of any kind", func(b *bench) {
		b.given(`workers: dead = 30000|T-5|v|dead|
			workers: foreign = 30000|T-5||foreign|
			workers: junk = what`)
		for _, c := range []string{"dead", "foreign", "junk"} {
			b.then(b.register(c, time.Minute), "false", "")
		}
	}},
	{"heartbeat: live", func(b *bench) {
		b.given("workers: c = 30000|T-99|1.2.3|live|8-0\nworkers: d = 30000|T-99|v|live|")
		b.then(b.heartbeat("c"), "true", "- workers: c = 30000|T-99|1.2.3|live|8-0\n+ workers: c = 30000|T|1.2.3|live|8-0")
		b.at(-1000) // a clock set back
		b.then(b.heartbeat("c"), "true", "- workers: c = 30000|T|1.2.3|live|8-0\n+ workers: c = 30000|T-1000|1.2.3|live|8-0")
	}},
	{"heartbeat: missing", func(b *bench) {
		b.given("workers: d = 30000|T-99|v|live|")
		b.then(b.heartbeat("c"), "false", "")
	}},
	{"heartbeat: dead", func(b *bench) {
		b.given("workers: c = 30000|T-99|v|dead|")
		b.then(b.heartbeat("c"), "false", "")
	}},
	{"heartbeat: foreign or unreadable", func(b *bench) {
		b.given("workers: c = 30000|T-99||foreign|\nworkers: d = junk")
		b.then(b.heartbeat("c"), "false", "")
		b.then(b.heartbeat("d"), "false", "")
	}},
	{"arm: live", func(b *bench) {
		b.given("workers: c = 30000|T-99|v|live|")
		b.then(b.arm("c", "8-0"), "true", "- workers: c = 30000|T-99|v|live|\n+ workers: c = 30000|T-99|v|live|8-0")
		b.then(b.arm("c", "9-0"), "true", "- workers: c = 30000|T-99|v|live|8-0\n+ workers: c = 30000|T-99|v|live|9-0")
	}},
	{"arm: missing", func(b *bench) {
		b.given("workers: d = 30000|T-99|v|live|")
		b.then(b.arm("c", "8-0"), "false", "")
	}},
	{"arm: dead or foreign", func(b *bench) {
		b.given("workers: c = 30000|T-99|v|dead|\nworkers: d = 30000|T-99||foreign|")
		b.then(b.arm("c", "8-0"), "false", "")
		b.then(b.arm("d", "8-0"), "false", "")
	}},
	{"workers of the wrong type", func(b *bench) {
		b.given("workers = oops")
		for _, got := range []string{b.register("c", time.Second), b.heartbeat("c"), b.arm("c", "8-0"), b.remove("c")} {
			if !strings.Contains(got, "WRONGTYPE") {
				b.failf("%s, want WRONGTYPE", got)
			}
		}
	}},
	{"remove: holds nothing", func(b *bench) {
		b.given(`main: 1-0 body=a
			main @g: at 1-0
			main @g c:
			main @g d: 1-0
			retry @g: at 0-0
			retry @g c:
			retry @g d:
			workers: c = 1000|T|v|dead|
			workers: d = 1000|T|v|dead|`)
		b.then(b.remove("c"), "0", "- main @g c:\n- retry @g c:\n- workers: c = 1000|T|v|dead|")
		b.then(b.remove("c"), "0", "")
		b.then(b.remove("unknown"), "0", "")
	}},
	{"remove: holds entries of the main stream", func(b *bench) {
		b.given(`main: 1-0 body=a
			main: 2-0 body=a
			main: 3-0 body=a
			main @g: at 3-0
			main @g c: 1-0 3-0
			main @g d: 2-0
			workers: c = 1000|T|v|dead|`)
		b.then(b.remove("c"), "2", "")
	}},
	{"remove: holds entries of both streams, one deleted", func(b *bench) {
		b.given(`main: 1-0 body=a
			main @g: at 1-0
			main @g c: 1-0
			retry: 2-0 !
			retry: 3-0 body=a
			retry @g: at 3-0
			retry @g c: 2-0 3-0
			workers: c = 1000|T|v|dead|`)
		b.then(b.remove("c"), "3", "")
		b.do("XACK", b.k.Main, "g", "1-0")
		b.last = b.state()
		b.then(b.remove("c"), "2", "")
	}},
	{"remove: no stream, no group", func(b *bench) {
		b.given("main: 1-0 body=a\nworkers: c = 1000|T|v|dead|")
		b.then(b.remove("c"), "0", "- workers: c = 1000|T|v|dead|")
	}},
	{"remove: a stream of the wrong type is not taken for an empty one", func(b *bench) {
		b.given("retry = oops\nmain: 1-0 body=a\nmain @g: at 1-0\nmain @g c:\nworkers: c = 1000|T|v|dead|")
		got := b.remove("c")
		if !strings.Contains(got, "WRONGTYPE") {
			b.failf("%s, want WRONGTYPE", got)
		}
		b.then("", "", "")
	}},
}
