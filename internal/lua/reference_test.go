package lua

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// reference says, one step after the other, where each message must be and what has been counted on it. It is written
// from the rules, not from the scripts: no bounds, no keys, ids taken from the server as it gives them out.
type reference struct {
	clock       int64 // ms after the epoch
	main, retry stream
	dead        []message
	parked      map[string]*waiting
	delayed     map[string]*waiting
	seen        map[string]bool
	sent        map[string]string
	position    string // recorded, of the group
	other       string // last delivered of a foreign group that acks at once; "" = there is none
	broken      bool   // the dead letters' key is of another type: who would die stays
}

// stream is a stream with the group's view of it.
type stream struct {
	entries []message
	group   bool
	last    string            // delivered
	pending map[string]string // entry id → consumer
	top     string            // largest id there ever was
}

// message is a message in a stream; id "" until the server's is known.
type message struct {
	id string
	item
}

// waiting is a message with a due time between two bounds; orphaned, it has none. raw is what a hand wrote over its value.
type waiting struct {
	item
	raw      string
	from, to int64
	orphaned bool
}

// item is a message with what has been counted on it.
type item struct {
	stable                          string // "" = the entry's own id
	rest                            []string
	rc, lost, losses, cut, redriven int
	due                             int64
	err, reason, from               string
}

func newReference() *reference {
	return &reference{
		main:   stream{group: true, last: "0-0", pending: map[string]string{}, top: "0-0"},
		retry:  stream{group: true, last: "0-0", pending: map[string]string{}, top: "0-0"},
		parked: map[string]*waiting{}, delayed: map[string]*waiting{},
		seen: map[string]bool{}, sent: map[string]string{}, position: "0-0",
	}
}

func itemOf(fields []string) item {
	m := wire.Parse("", fields)
	return item{m.ID, travelling(fields), m.RC, m.Lost, m.Losses, m.Cut, m.Redriven, m.Due, m.Err, m.Reason, m.From}
}

func (i item) String() string {
	return fmt.Sprintf("%s [%s] rc=%d lost=%d losses=%d cut=%d redriven=%d due=%d err=%q reason=%q from=%q",
		i.stable, showFields(i.rest), i.rc, i.lost, i.losses, i.cut, i.redriven, i.due, i.err, i.reason, i.from)
}

// up counts one more; a counter has at most nine digits.
func up(n int) int { return min(n+1, 999_999_999) }

// known gives the item the id it keeps from its first move on.
func (e message) known() item {
	i := e.item
	if i.stable == "" {
		i.stable = e.id
	}
	return i
}

func (s *stream) find(id string) (message, bool) {
	i := slices.IndexFunc(s.entries, func(e message) bool { return e.id == id })
	if i < 0 {
		return message{}, false
	}
	return s.entries[i], true
}

func (s *stream) remove(id string) {
	s.entries = slices.DeleteFunc(s.entries, func(e message) bool { return e.id == id })
}

func (r *reference) source(src string) *stream {
	if src == Main {
		return &r.main
	}
	return &r.retry
}

// read hands out up to n unread entries.
func (r *reference) read(src, consumer string, n int) []string {
	s := r.source(src)
	var ids []string
	for _, e := range s.entries {
		if len(ids) < n && wire.CompareIDs(e.id, s.last) > 0 {
			s.last = e.id
			s.pending[e.id] = consumer
			ids = append(ids, e.id)
		}
	}
	return ids
}

func (r *reference) park(set map[string]*waiting, member string, i item, from, to int64) string {
	name := member
	for n := 2; set[name] != nil; n++ {
		name = fmt.Sprintf("%s/%d", member, n)
	}
	set[name] = &waiting{item: i, from: from, to: to}
	return name
}

func (r *reference) bury(i item, reason string) string {
	if r.broken {
		return Failed
	}
	i.reason = reason
	r.dead = append(r.dead, message{item: i})
	return "dead " + reason + " *"
}

func (r *reference) ack(src, id string) {
	s := r.source(src)
	delete(s.pending, id)
	if src == Retry {
		s.remove(id)
	}
}

// settle is what must come of a settlement: the reply, with * for new ids.
func (r *reference) settle(consumer string, most int, s Settlement, kept []string) string {
	from := r.source(s.Source)
	if s.Seen != "" {
		r.seen[s.Seen] = true
	}
	if !from.group {
		return "error NOGROUP"
	}
	if holder, ok := from.pending[s.EntryID]; !ok || holder != consumer {
		return Lost
	}
	if s.Verb == Ack {
		r.ack(s.Source, s.EntryID)
		return Acked
	}
	e, ok := from.find(s.EntryID)
	if !ok {
		if s.Packed == "" {
			return Gone
		}
		e = message{s.EntryID, itemOf(kept)}
	}
	i := e.known()
	member, reply := s.Source+"/"+s.EntryID, ""
	later := r.clock + s.Delay.Milliseconds()
	switch s.Verb {
	case Fail:
		i.rc, i.lost, i.err = up(i.rc), 0, s.Error
		switch {
		case s.Limit >= 0 && i.rc > s.Limit:
			reply = r.bury(i, "retries")
		case most > 0 && len(r.parked) >= most:
			reply = r.bury(i, "overflow")
		default:
			reply = "parked " + r.park(r.parked, member, i, later, later)
		}
	case Snooze:
		i.lost = 0
		reply = "parked " + r.park(r.parked, member, i, later, later)
	case Bury:
		if s.Counts {
			i.rc = up(i.rc)
		}
		if s.Error != "" {
			i.err = s.Error
		}
		reply = r.bury(i, s.Reason)
	case Cut:
		i.cut = up(i.cut)
		if i.cut > s.Limit {
			reply = r.bury(i, "cut")
			break
		}
		fallthrough
	case Release:
		r.retry.entries = append(r.retry.entries, message{item: i})
		reply = Released
	}
	if reply == Failed {
		return reply
	}
	r.ack(s.Source, s.EntryID)
	return reply
}

// reclaim empties a dead owner; suspect is the message it said it runs alone.
func (r *reference) reclaim(owner, suspect string, maxLost int, first, most int64) (moved int) {
	for _, src := range []string{Main, Retry} {
		s := r.source(src)
		var ids []string
		for id, c := range s.pending {
			if c == owner {
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids, wire.CompareIDs)
		for _, id := range ids {
			e, ok := s.find(id)
			if !ok {
				r.ack(src, id)
				continue
			}
			i := e.known()
			i.losses = up(i.losses)
			if i.lost < 2 || src == Retry && id == suspect {
				i.lost = up(i.lost)
			}
			switch {
			case i.lost > maxLost && r.bury(i, "lost") == Failed:
				continue
			case i.lost > maxLost:
			case i.lost >= 2:
				delay := min(most, first<<(i.lost-2))
				r.park(r.parked, src+"/"+id, i, r.clock, r.clock+delay)
			default:
				r.retry.entries = append(r.retry.entries, message{item: i})
			}
			r.ack(src, id)
			moved++
		}
	}
	return moved
}

// promote moves what is due; delayed messages get the id they were given. What it cannot move is due a minute later.
func (r *reference) promote(set map[string]*waiting, to *stream) (moved int, lines string) {
	due := slices.DeleteFunc(slices.Collect(maps.Keys(set)), func(m string) bool { return set[m].orphaned || set[m].from > r.clock })
	slices.SortFunc(due, func(a, b string) int {
		if d := set[a].from - set[b].from; d != 0 {
			return int(d)
		}
		return strings.Compare(a, b)
	})
	for _, m := range due {
		w := set[m]
		if w.raw != "" {
			said := r.bury(item{rest: []string{wire.Raw, w.raw, wire.Member, m}}, "malformed")
			if said == Failed {
				w.from, w.to = r.clock+60_000, r.clock+60_000
				lines += " ; " + said
				continue
			}
			lines += " ; " + said + " " + m
		} else {
			if strings.HasPrefix(m, "d-") {
				w.stable, w.due = m, epoch+w.from
			}
			to.entries = append(to.entries, message{item: w.item})
			moved++
		}
		delete(set, m)
	}
	return moved, lines
}

// redrive is for the own group, or anew; the letter leaves the dead either way.
func (r *reference) redrive(at int, anew bool, body []byte) string {
	e := r.dead[at]
	i := e.known()
	i.rest = slices.Clone(i.rest)
	has := -1
	for n := 0; n < len(i.rest); n += 2 {
		if i.rest[n] == wire.Body && has < 0 {
			has = n + 1
		}
	}
	switch {
	case body == nil && has < 0:
		return Unredrivable
	case body != nil && has < 0:
		i.rest = append(i.rest, wire.Body, string(body))
	case body != nil:
		i.rest[has] = string(body)
	}
	r.dead = slices.Delete(r.dead, at, at+1)
	i.rc, i.lost, i.losses, i.cut, i.reason = 0, 0, 0, 0, ""
	if anew {
		r.main.entries = append(r.main.entries, message{item: item{rest: i.rest, from: i.stable}})
		return "moved *"
	}
	i.redriven, i.due = up(i.redriven), epoch+r.clock
	return "moved " + r.park(r.parked, "x/"+e.id, i, r.clock, r.clock)
}

// need is the id before the first that the group may not lose.
func (s *stream) need() string {
	least := s.last
	for id := range s.pending {
		if b := idBefore(id); wire.CompareIDs(b, least) < 0 {
			least = b
		}
	}
	return least
}

func idBefore(id string) string {
	var ms, seq uint64
	if _, err := fmt.Sscanf(id, "%d-%d", &ms, &seq); err != nil {
		panic(err)
	}
	if seq > 0 {
		return fmt.Sprintf("%d-%d", ms, seq-1)
	}
	if ms == 0 {
		return "0-0"
	}
	return fmt.Sprintf("%d-%d", ms-1, ^uint64(0))
}

// compact removes what neither group needs.
func (r *reference) compact() (removed int) {
	if !r.main.group {
		return 0
	}
	kept := slices.DeleteFunc(slices.Clone(r.main.entries), func(e message) bool {
		_, held := r.main.pending[e.id]
		return !held && wire.CompareIDs(e.id, r.main.last) <= 0 && (r.other == "" || wire.CompareIDs(e.id, r.other) <= 0)
	})
	removed = len(r.main.entries) - len(kept)
	r.main.entries = kept
	return removed
}

// remake makes the group again where it was recorded.
func (r *reference) remake() {
	r.main.group, r.main.last = true, r.position
	r.main.pending = map[string]string{}
}
