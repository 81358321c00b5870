package lua

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// driver runs a sequence of operations on the scripts and on the reference, and compares them after each.
type driver struct {
	b    *bench
	r    *reference
	next func(n int) int // a choice out of n

	workers  map[string]string // lease records as last seen
	silent   map[string]int64  // ms in which a registered consumer got no ok
	current  [3]string         // names of the running processes
	starts   int
	receipts []receipt
	swept    string
	stepped  bool // since the last sweep
	log      []string
}

// receipt is a delivery that somebody was given, however long ago.
type receipt struct {
	consumer, src, id string
	fields            []string
}

func newDriver(b *bench, next func(n int) int) *driver {
	d := &driver{b: b, r: newReference(), next: next, workers: map[string]string{}, silent: map[string]int64{}}
	b.ensure("0", GroupStart, "0")
	b.do("XGROUP", "CREATE", b.k.Main, "foreign", "0")
	d.r.other = "0-0"
	for c := range d.current {
		d.start(c)
	}
	return d
}

// start gives a process a new name and registers it.
func (d *driver) start(c int) {
	d.starts++
	name := fmt.Sprintf("c%d.%d", c, d.starts)
	vis := []time.Duration{4 * time.Second, 8 * time.Second}[d.starts%2]
	d.b.equal("registered", d.b.register(name, vis), "true")
	d.current[c] = name
	d.silent[name] = 0
	d.workers[name] = d.b.c.HGet(d.b.ctx, d.b.k.Workers, name).Val()
}

// operations, with how often each comes.
var operations = []struct {
	weight int
	name   string
	run    func(d *driver)
}{
	{5, "publish", (*driver).publish},
	{2, "publish by script", (*driver).publishScript},
	{8, "read", (*driver).read},
	{12, "settle", (*driver).settle},
	{3, "heartbeat", (*driver).heartbeat},
	{4, "time passes", (*driver).pass},
	{1, "clock steps", (*driver).step},
	{6, "tick", (*driver).tick},
	{4, "reclaim", (*driver).reclaim},
	{2, "a worker dies", (*driver).die},
	{2, "remove", (*driver).remove},
	{4, "promote", (*driver).promote},
	{2, "redrive", (*driver).redrive},
	{1, "purge", (*driver).purge},
	{2, "compact", (*driver).compact},
	{1, "destroy", (*driver).destroy},
	{2, "ensure", (*driver).ensure},
	{1, "seek", (*driver).seek},
	{1, "foreign hand", (*driver).foreignHand},
	{2, "dead letters of another type", (*driver).breakDead},
	{1, "arm", (*driver).arm},
	{1, "cancel", (*driver).cancel},
	{1, "janitor", (*driver).janitor},
}

var lot = func() (out []int) {
	for i, o := range operations {
		for range o.weight {
			out = append(out, i)
		}
	}
	return out
}()

// run makes steps until one goes wrong or done says so.
func (d *driver) run(done func() bool) {
	for !done() {
		o := operations[lot[d.next(len(lot))]]
		d.log = append(d.log, o.name)
		o.run(d)
		d.compare()
		if len(d.b.faults) > 0 {
			d.b.fatalf("after %d steps:\n\t%s", len(d.log), strings.Join(d.log, "\n\t"))
		}
	}
}

func (d *driver) note(format string, args ...any) {
	d.log[len(d.log)-1] += " " + fmt.Sprintf(format, args...)
}

var bodies = [][]string{
	{"body", "a"},
	{"x", "1", "body", "b", "x", "2"},
	{"body", "c\x00\xff\r\n", "", ""},
	{"data", "no body"},
	{"rc", "nan", "body", "d", "lost", "1", "cut", "1234567890"},
	{"body", "e", "oid", "same"},
	{"lost", "2", "body", "h"},
	{"lost", "7", "body", "j"},
	{"rc", "999999998", "cut", "999999999", "losses", "999999999", "body", "i"},
	{"body", "f", "losses", "-1", "rc", "1", "body", "g", "err", "old"},
}

func (d *driver) publish() {
	f := bodies[d.next(len(bodies))]
	id := d.b.add(d.b.k.Main, "*", f...)
	d.r.main.entries = append(d.r.main.entries, message{id, itemOf(f)})
}

func (d *driver) publishScript() {
	p := Publication{Fields: []string{"body", "s"}, Random: fmt.Sprintf("a%d", len(d.log))}
	if d.next(2) == 0 {
		p.Delay = []time.Duration{time.Second, 10 * time.Second}[d.next(2)]
	}
	if n := d.next(4); n > 0 {
		p.DedupeID, p.Window = fmt.Sprint("did", n), time.Hour
		p.Fields = append(p.Fields, "did", p.DedupeID)
	}
	id, duplicate, err := Publish(d.b.ctx, d.b.r, d.b.k.Stream, p)
	d.b.must(err)
	if first, ok := d.r.sent[p.DedupeID]; ok {
		d.b.equal("the duplicate's id", fmt.Sprint(id, duplicate), fmt.Sprint(first, true))
		return
	}
	d.b.equal("duplicate", duplicate, false)
	if p.DedupeID != "" {
		d.r.sent[p.DedupeID] = id
	}
	if p.Delay > 0 {
		at := d.r.clock + p.Delay.Milliseconds()
		d.r.park(d.r.delayed, id, itemOf(p.Fields), at, at)
		return
	}
	d.r.main.entries = append(d.r.main.entries, message{id, itemOf(p.Fields)})
}

// read is for a process, mostly under a live name: a read that was long on its way comes under whatever name it had.
func (d *driver) read() {
	c, n := d.next(3), 1+d.next(3)
	if late := d.next(8) == 0; !late && !strings.Contains(d.workers[d.current[c]], "|live|") {
		d.start(c)
	}
	if !d.r.main.group {
		return
	}
	name := d.current[c]
	d.note("%s %d", name, n)
	got := d.b.do("XREADGROUP", "GROUP", "g", name, "COUNT", n, "STREAMS", d.b.k.Main, d.b.k.Retry, ">", ">")
	streams, _ := got.(map[any]any)
	for _, src := range []string{Main, Retry} {
		key := map[string]string{Main: d.b.k.Main, Retry: d.b.k.Retry}[src]
		var ids []string
		list, _ := streams[key].([]any)
		for _, e := range list {
			pair := e.([]any)
			id := pair[0].(string)
			ids = append(ids, id)
			d.receipts = append(d.receipts, receipt{name, src, id, texts(pair[1].([]any))})
		}
		d.b.equal("read from "+src, ids, d.r.read(src, name, n))
	}
}

func (d *driver) settle() {
	if len(d.receipts) == 0 {
		return
	}
	back := min(len(d.receipts), 10)
	c := d.receipts[len(d.receipts)-1-d.next(back)]
	s := Settlement{
		Verb: []string{Ack, Ack, Fail, Fail, Fail, Snooze, Bury, Release, Cut}[d.next(9)], Source: c.src, EntryID: c.id,
		Delay: []time.Duration{0, time.Second, 5 * time.Second}[d.next(3)], Error: fmt.Sprint("e", len(d.log)),
	}
	name := c.consumer
	if d.next(6) == 0 {
		name = d.current[d.next(3)]
	}
	most := 0
	switch s.Verb {
	case Ack:
		if d.next(2) == 0 {
			s.Seen, s.TTL = d.b.k.Seen(wire.Parse(c.id, c.fields).ID), time.Hour
		}
	case Fail:
		s.Limit, most = []int{-1, 2, 2, 0}[d.next(4)], []int{0, 0, 4}[d.next(3)]
	case Bury:
		s.Reason, s.Counts = "rejected", d.next(2) == 0
	case Cut:
		s.Limit = 1
	}
	if s.Verb != Ack && d.next(2) == 0 {
		s.Packed = wire.Pack(c.fields)
	}
	want := d.r.settle(name, most, s, c.fields)
	got := d.b.settleCap(name, most, s)
	d.note("%s %s/%s by %s (read by %s): %s", s.Verb, s.Source, s.EntryID, name, c.consumer, got)
	if !strings.HasPrefix(got, moments(want)) {
		d.b.failf("settled as %s, want %s", got, want)
	}
}

func (d *driver) live(name string) bool { return strings.Contains(d.workers[name], "|live|") }

func (d *driver) heartbeat() { d.beat(d.current[d.next(3)]) }

func (d *driver) beat(name string) {
	d.b.equal("heartbeat of "+name, d.b.heartbeat(name), fmt.Sprint(d.live(name)))
	if d.live(name) {
		d.silent[name] = 0
	}
}

func (d *driver) move(by, silence int64) {
	d.note("%d ms", by)
	d.r.clock += by
	d.b.at(d.r.clock)
	for name := range d.silent {
		d.silent[name] += silence
	}
}

func (d *driver) pass() {
	by := []int64{100, 1000, 1000, 2500, 6000}[d.next(5)]
	d.move(by, by)
}

// step is a clock set forward or back, or a freeze of all: nobody has aged by more than one interval. Two steps between two
// sweeps could undo each other unseen; no script can tell.
func (d *driver) step() {
	if d.stepped {
		return
	}
	d.stepped = true
	d.move([]int64{60_000, -60_000}[d.next(2)], 1000)
}

// die lets one process fall silent for longer than any visibility, while the others go on, and what it held is taken over.
func (d *driver) die() {
	c := d.next(3)
	for range 10 {
		d.move(1000, 1000)
		d.beat(d.current[(c+1)%3])
		d.sweep(d.current[(c+2)%3])
	}
	if name := d.current[c]; d.live(name) && !d.stepped {
		d.b.failf("%s lives on after %d ms of silence", name, d.silent[name])
	}
	d.reclaim()
}

func (d *driver) tick() {
	name := ""
	if c := d.next(4); c < 3 {
		name = d.current[c]
	}
	d.sweep(name)
}

func (d *driver) sweep(name string) {
	was, sweeps := maps.Clone(d.workers), false
	l, err := Tick(d.b.ctx, d.b.r, d.b.k, name, time.Second, Totals{})
	d.b.must(err)
	beat, state := "none", StateOK
	if name != "" {
		beat = map[bool]string{true: "ok", false: "gone"}[d.live(name)]
		if beat == "ok" {
			d.silent[name] = 0
		}
	}
	if !d.r.main.group {
		state = StateNoGroup
	}
	d.b.equal("tick of "+name, l.Beat+" "+l.State, beat+" "+state)
	if swept := d.b.c.HGet(d.b.ctx, d.b.k.Meta, "swept").Val(); swept != d.swept {
		d.swept, d.stepped, sweeps = swept, false, true
		if d.r.main.group {
			d.r.position = d.r.main.need()
		}
	}
	d.workers = d.b.c.HGetAll(d.b.ctx, d.b.k.Workers).Val()
	for n, before := range was {
		now, ok := d.workers[n]
		if !ok {
			d.b.failf("the tick removed the record of %s", n)
		}
		if strings.Contains(before, "|dead|") && now != before {
			d.b.failf("the dead %s changed from %s to %s", n, before, now)
		}
		vis, _ := strconv.ParseInt(before[:strings.IndexByte(before, '|')], 10, 64)
		if strings.Contains(before, "|live|") && strings.Contains(now, "|dead|") && d.silent[n] <= vis {
			d.b.failf("%s is dead after %d ms of silence, its visibility is %d", n, d.silent[n], vis)
		}
	}
	if !sweeps {
		return
	}
	for _, s := range []*stream{&d.r.main, &d.r.retry} {
		for _, holder := range s.pending {
			if d.workers[holder] == "" {
				d.b.failf("%s holds entries and has no record after a sweep", holder)
			}
		}
	}
}

func (d *driver) reclaim() {
	for _, name := range slices.Sorted(maps.Keys(d.workers)) {
		parts := strings.Split(d.workers[name], "|")
		var moved int64
		from := ""
		for more, steps := true, 0; more; steps++ {
			got, err := Reclaim(d.b.ctx, d.b.r, d.b.k, name, from, 3, time.Second, 3*time.Second)
			d.b.must(err)
			moved, from, more = moved+got.Moved, got.Next, got.Next != ""
			if steps > 20 {
				d.b.fatalf("reclaim of %s does not end", name)
			}
		}
		want := 0
		if parts[3] == "dead" {
			before := d.r.main.pending
			if !d.r.main.group {
				d.r.main.pending = map[string]string{}
			}
			want = d.r.reclaim(name, parts[4], 3, 1000, 3000)
			if !d.r.main.group {
				d.r.main.pending = before
			}
		}
		d.b.equal("reclaimed of "+name, moved, want)
	}
}

func (d *driver) remove() {
	names := slices.Sorted(maps.Keys(d.workers))
	if len(names) == 0 {
		return
	}
	name, held := names[d.next(len(names))], 0
	for _, s := range []*stream{&d.r.main, &d.r.retry} {
		for _, holder := range s.pending {
			if holder == name {
				held++
			}
		}
	}
	d.b.equal("held by "+name, d.b.remove(name), held)
	if held == 0 {
		delete(d.workers, name)
		delete(d.silent, name)
	}
}
