package lua

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/wire"
)

func (d *driver) promote() {
	if d.next(3) == 0 {
		moved, _ := d.r.promote(d.r.delayed, &d.r.main)
		d.b.equal("promoted", d.b.promote(true), fmt.Sprint("moved=", moved))
		return
	}
	orphans := len(slices.DeleteFunc(slices.Collect(maps.Values(d.r.parked)), func(w *waiting) bool { return !w.orphaned }))
	moved, lines := d.r.promote(d.r.parked, &d.r.retry)
	want := fmt.Sprint("moved=", moved)
	if orphans > 0 {
		want += " mismatch"
	}
	refused := " WRONGTYPE Operation against a key holding the wrong kind of value (XADD " + d.b.k.DLQ + ")"
	d.b.equal("promoted", strings.ReplaceAll(d.b.promote(false), refused, ""), want+moments(lines))
}

func (d *driver) letter() (int, Letter) {
	if len(d.r.dead) == 0 {
		return 0, Letter{}
	}
	at := d.next(len(d.r.dead))
	e := d.r.dead[at]
	l := Letter{EntryID: e.id, ID: e.known().stable}
	for i := 0; i < len(e.rest); i += 2 {
		if e.rest[i] == wire.DID && l.DedupeID == "" {
			l.DedupeID = e.rest[i+1]
		}
	}
	return at, l
}

func (d *driver) redrive() {
	at, l := d.letter()
	if l.EntryID == "" {
		return
	}
	var body []byte
	if d.next(4) == 0 {
		body = []byte("edited\x00")
	}
	anew := d.next(4) == 0
	want := d.r.redrive(at, anew, body)
	if !anew && want != Unredrivable {
		delete(d.r.seen, d.b.k.Seen(l.ID))
	}
	d.b.equal("redriven", d.b.redrive(anew, body, l), moments(want))
}

func (d *driver) purge() {
	at, l := d.letter()
	if l.EntryID == "" {
		return
	}
	d.b.equal("purged", d.b.purge(l, l), "1")
	d.r.dead = slices.Delete(d.r.dead, at, at+1)
	if d.r.sent[l.DedupeID] == l.ID {
		delete(d.r.sent, l.DedupeID)
	}
}

func (d *driver) compact() {
	if d.next(2) == 0 { // the foreign group catches up
		d.b.do("XGROUP", "SETID", d.b.k.Main, "foreign", "$")
		d.r.other = d.r.main.top
	}
	var removed int64
	for more, steps := true, 0; more; steps++ {
		got, err := Compact(d.b.ctx, d.b.r, d.b.k.Stream, false, true)
		d.b.must(err)
		removed, more = removed+got.Removed, got.More
		if steps > 20 {
			d.b.fatalf("compaction does not end")
		}
	}
	d.b.equal("compacted", removed, d.r.compact())
}

func (d *driver) destroy() {
	d.b.do("XGROUP", "DESTROY", d.b.k.Main, "g")
	d.r.main.group, d.r.main.pending = false, map[string]string{}
}

func (d *driver) ensure() {
	want := "exists " + d.r.main.last
	if !d.r.main.group {
		d.r.remake()
		want = "remade " + d.r.main.last
	}
	d.b.equal("ensured", d.b.ensure("$", []string{GroupAgain, GroupStart}[d.next(2)], ""), moments(want))
}

func (d *driver) seek() {
	to := []string{"0", "$"}[d.next(2)]
	want := "moved"
	switch {
	case !d.r.main.group:
		want = "missing"
	case len(d.r.main.pending) > 0:
		want = "pending"
	case to == "0":
		d.r.main.last = "0-0"
		d.r.position = "0-0"
	default:
		d.r.main.last = d.r.main.top
		d.r.position = d.r.main.top
	}
	got, _, _ := strings.Cut(d.b.seek(to), " ")
	d.b.equal("sought "+to, got, want)
}

// foreignHand deletes an entry, takes a due time out, or writes over a parked value.
func (d *driver) foreignHand() {
	switch n := d.next(4); n {
	case 0, 1:
		s, key := &d.r.main, d.b.k.Main
		if n == 1 {
			s, key = &d.r.retry, d.b.k.Retry
		}
		if len(s.entries) == 0 {
			return
		}
		id := s.entries[d.next(len(s.entries))].id
		d.note("deletes %s", id)
		d.b.do("XDEL", key, id)
		s.remove(id)
	case 2:
		if m := d.member(); m != "" {
			d.b.do("ZREM", d.b.k.Due, m)
			d.r.parked[m].orphaned = true
		}
	default:
		d.spoil()
	}
}

// member is one of the parked, "" when there is none.
func (d *driver) member() string {
	members := slices.Sorted(maps.Keys(d.r.parked))
	if len(members) == 0 {
		return ""
	}
	return members[d.next(len(members))]
}

func (d *driver) spoil() {
	if m := d.member(); m != "" {
		d.note("spoils %s", m)
		d.b.do("HSET", d.b.k.Parked, m, "junk")
		d.r.parked[m].raw = "junk"
	}
}

const aside = ".aside" // behind the name of a key that another stands in for

// breakDead makes the dead letters' key one of another type for a while.
func (d *driver) breakDead() {
	key, some := d.b.k.DLQ, d.b.c.Exists(d.b.ctx, d.b.k.DLQ).Val() == 1
	if some {
		d.b.do("RENAME", key, key+aside)
	}
	d.b.do("SET", key, "oops")
	d.r.broken = true
	if d.next(2) == 0 {
		d.spoil()
	}
	for range 1 + d.next(6) {
		[]func(*driver){(*driver).settle, (*driver).settle, (*driver).die, (*driver).reclaim, (*driver).promote}[d.next(5)](d)
		d.compare()
	}
	d.r.broken = false
	d.b.do("DEL", key)
	if some {
		d.b.do("RENAME", key+aside, key)
	}
}

func (d *driver) janitor() {
	orphans := 0
	for _, w := range d.r.parked {
		if w.orphaned {
			orphans++
			w.orphaned, w.from, w.to = false, d.r.clock, d.r.clock
		}
	}
	next, found, err := Orphans(d.b.ctx, d.b.r, d.b.k.Due, d.b.k.Parked, "0")
	d.b.must(err)
	d.b.equal("orphans", fmt.Sprint(next, found), fmt.Sprint("0", orphans))
}

func (d *driver) arm() {
	name := d.current[d.next(3)]
	for _, c := range slices.Backward(d.receipts) {
		if c.src == Retry {
			d.b.equal("armed "+name, d.b.arm(name, c.id), fmt.Sprint(d.live(name)))
			return
		}
	}
}

func (d *driver) cancel() {
	members := slices.Sorted(maps.Keys(d.r.delayed))
	if len(members) == 0 {
		return
	}
	m, did := members[d.next(len(members))], ""
	if rest := d.r.delayed[m].rest; len(rest) > 2 {
		did = rest[3]
	}
	d.b.equal("cancelled "+m, d.b.cancel(m, did), "true")
	delete(d.r.delayed, m)
	if d.r.sent[did] == m {
		delete(d.r.sent, did)
	}
}

// compare reads all that the server holds and holds it against the reference; new ids and suspects' due times are taken over.
func (d *driver) compare() {
	k, ctx := d.b.k, d.b.ctx
	p := d.b.c.Pipeline()
	read := func(args ...any) *redis.Cmd { return p.Do(ctx, args...) }
	main, retry := read("XINFO", "STREAM", k.Main, "FULL", "COUNT", 0), read("XINFO", "STREAM", k.Retry, "FULL", "COUNT", 0)
	deadKey := k.DLQ
	if d.r.broken {
		deadKey += aside
	}
	dead := read("XRANGE", deadKey, "-", "+")
	parked, due := p.HGetAll(ctx, k.Parked), p.ZRangeWithScores(ctx, k.Due, 0, -1)
	sparked, sdue := p.HGetAll(ctx, k.Stream.Parked), p.ZRangeWithScores(ctx, k.Stream.Due, 0, -1)
	workers, position := p.HGetAll(ctx, k.Workers), p.HGet(ctx, k.Groups, "g")
	marks := map[string]*redis.IntCmd{}
	for key := range d.r.seen {
		marks[key] = p.Exists(ctx, key)
	}
	_, err := p.Exec(ctx)
	d.b.must(err)

	d.stream("main", &d.r.main, main.Val().(map[any]any))
	d.stream("retry", &d.r.retry, retry.Val().(map[any]any))
	d.entries("dead", d.r.dead, dead.Val().([]any))
	d.waiting("parked", d.r.parked, parked.Val(), due.Val())
	d.waiting("delayed", d.r.delayed, sparked.Val(), sdue.Val())
	if got, _, _ := strings.Cut(position.Val(), "|"); got != d.r.position {
		d.b.failf("the recorded position is %s, want %s", got, d.r.position)
	}
	for key, n := range marks {
		d.b.equal("marker "+key, n.Val(), 1)
	}
	for name := range d.workers {
		if workers.Val()[name] == "" {
			d.b.failf("the record of %s is gone", name)
		}
	}
	d.workers = workers.Val()
}

func (d *driver) stream(name string, s *stream, info map[any]any) {
	d.entries(name, s.entries, info["entries"].([]any))
	s.top = info["last-generated-id"].(string)
	group := false
	for _, x := range info["groups"].([]any) {
		g := x.(map[any]any)
		if g["name"] != "g" {
			continue
		}
		group = true
		d.b.equal(name+": last delivered", g["last-delivered-id"], s.last)
		pending := map[string]string{}
		for _, p := range g["pending"].([]any) {
			pending[p.([]any)[0].(string)] = p.([]any)[1].(string)
		}
		if !maps.Equal(pending, s.pending) {
			d.b.failf("%s: pending %v, want %v", name, pending, s.pending)
		}
	}
	d.b.equal(name+": group", group, s.group)
}

func (d *driver) entries(name string, want []message, got []any) {
	if len(got) != len(want) {
		d.b.failf("%s: %d entries, want %d: %v, want %v", name, len(got), len(want), got, want)
		return
	}
	for i, e := range got {
		pair := e.([]any)
		id, it := pair[0].(string), itemOf(texts(pair[1].([]any)))
		if want[i].id == "" {
			want[i].id = id
		}
		if id != want[i].id || it.String() != want[i].String() {
			d.b.failf("%s: entry %s %v, want %s %v", name, id, it, want[i].id, want[i].item)
		}
	}
}

func (d *driver) waiting(name string, want map[string]*waiting, values map[string]string, scores []redis.Z) {
	due := map[string]int64{}
	for _, z := range scores {
		due[z.Member.(string)] = int64(z.Score) - epoch
	}
	for m := range values {
		if want[m] == nil {
			d.b.failf("%s: %s is not to be there", name, m)
		}
	}
	for m, w := range want {
		if w.raw != "" {
			d.b.equal(name+": the spoiled "+m, values[m], w.raw)
		} else if f, err := wire.Unpack(values[m]); err != nil {
			d.b.failf("%s: %s: %v", name, m, err)
		} else if got := itemOf(f); got.String() != w.String() {
			d.b.failf("%s: %s is %v, want %v", name, m, got, w.item)
		}
		at, ok := due[m]
		delete(due, m)
		if ok == w.orphaned || ok && (at < w.from || at > w.to) {
			d.b.failf("%s: %s is due at %s, want %d to %d", name, m, strconv.FormatInt(at, 10), w.from, w.to)
		}
		if ok {
			w.from, w.to = at, at
		}
	}
	if len(due) > 0 {
		d.b.failf("%s: due without a value: %v", name, due)
	}
}
