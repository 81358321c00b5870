package model

import "fmt"

// Kind is what a violation is about.
type Kind string

// The kinds of violation. Each names a promise.
const (
	Lost               Kind = "LOST"                // a message is nowhere and no run of it that counts succeeded
	TwoCopies          Kind = "TWO COPIES"          // a message stands in two places of a group
	Ghost              Kind = "GHOST"               // an entry is pending and not there, and nobody trimmed by hand
	Count              Kind = "COUNT"               // a counter is not what happened
	WrongDeadLetter    Kind = "WRONG DEAD LETTER"   // a message died of its neighbour
	LiveLeaseTaken     Kind = "LIVE LEASE TAKEN"    // what a worker holds under a lease it believes in is not pending for it
	LiveOwnerTaken     Kind = "LIVE OWNER TAKEN"    // a worker that never stopped beating is marked dead
	TwoOwners          Kind = "TWO OWNERS"          // two workers hold a message under leases that both run
	StaleStart         Kind = "STALE START"         // a handler starts a message that its worker no longer owns
	StaleAck           Kind = "STALE ACK"           // an ack removes what another owns
	RunAgain           Kind = "RUN AGAIN"           // a handler starts although a success was settled and its marker should stand
	TrimmedUndelivered Kind = "TRIMMED UNDELIVERED" // compaction removes what a group still has to read
	Stuck              Kind = "STUCK"               // a live worker sweeps and yet a message never ends
)

// Violation is a broken promise.
type Violation struct {
	Kind Kind
	Text string
}

func violation(k Kind, format string, a ...any) *Violation {
	return &Violation{k, fmt.Sprintf(format, a...)}
}

// copies counts where a message stands in a group.
func (m *Model) copies(s *State, gi int, msg uint8) int {
	g := &s.g[gi]
	n := 0
	from := g.last
	if g.made == 0 {
		from = g.pos
	}
	for _, e := range s.main {
		if e.id != 0 && e.msg == msg && e.id > from {
			n++
		}
	}
	for _, p := range g.pel {
		if p.id != 0 && p.msg == msg && p.id <= from {
			n++
		}
	}
	for _, e := range g.retry {
		if e.id != 0 && e.msg == msg {
			n++
		}
	}
	for _, p := range g.parked {
		if p.kind != 0 && p.msg == msg {
			n++
		}
	}
	for _, d := range g.dead {
		if d.id != 0 && d.msg == msg {
			n++
		}
	}
	return n
}

// check says what is wrong with a state, nil if nothing.
func (m *Model) check(s *State) *Violation {
	for gi := range m.groups {
		if s.g[gi].recorded == 0 {
			continue
		}
		if v := m.checkGroup(s, gi); v != nil {
			return v
		}
	}
	for w := range s.w {
		for i := range s.w[w].h {
			if m.leased(s, w, s.w[w].h[i]) {
				if v := m.checkOwner(s, w, i); v != nil {
					return v
				}
			}
		}
	}
	return nil
}

func (m *Model) checkGroup(s *State, gi int) *Violation {
	g := &s.g[gi]
	for i := range uint8(m.msgs) {
		b := uint8(1) << i
		if s.pub&b == 0 {
			continue
		}
		c := m.copies(s, gi, i)
		if c == 0 && (g.ok|g.waive)&b == 0 {
			return violation(Lost, "m%d of group %d is nowhere and no handler of it ever succeeded", i, gi)
		}
		if c > 1 && !s.admitted() {
			return violation(TwoCopies, "m%d in group %d", i, gi)
		}
	}
	for _, p := range g.pel {
		if p.id != 0 && entryAt(s.main[:], p.id) < 0 && s.once&didTrim == 0 {
			return violation(Ghost, "pending entry %d of group %d has no entry", p.id, gi)
		}
	}
	if m.may(poisoned) {
		for _, d := range g.dead {
			if d.id != 0 && d.reason == byLost && d.msg != 0 {
				return violation(WrongDeadLetter, "m%d harmed nobody and is dead for reason lost", d.msg)
			}
		}
	}
	if s.admitted() || m.is(memberOid) {
		return nil
	}
	for _, e := range g.retry {
		if e.id != 0 && e.Counts != g.truth[e.msg] {
			return miscounted(e.msg, e.Counts, g.truth[e.msg])
		}
	}
	for _, p := range g.parked {
		if p.kind != 0 && p.Counts != g.truth[p.msg] {
			return miscounted(p.msg, p.Counts, g.truth[p.msg])
		}
	}
	return nil
}

func miscounted(msg uint8, c, truth Counts) *Violation {
	return violation(Count, "m%d says rc %d lost %d cut %d, truth %d %d %d", msg, c.rc, c.lost, c.cut, truth.rc, truth.lost, truth.cut)
}

// leased: the worker believes in the lease under which it holds this. One that has not met a new master yet believes in
// what is admitted to be lost.
func (m *Model) leased(s *State, w int, h Hold) bool {
	k := &s.w[w]
	return h.owns() && h.inc == k.inc && k.up != down && k.lease > 0 && k.reg == 1 && k.newMaster == 0
}

// checkOwner: what a worker holds under a lease that it believes in is pending for it; hence one valid owner.
func (m *Model) checkOwner(s *State, w, i int) *Violation {
	if s.waived != 0 {
		return nil
	}
	k := &s.w[w]
	h := k.h[i]
	gi := m.groupOf(w)
	if !s.mine(gi, h.st, h.id, m.nameOf(w, h.inc)) {
		return violation(LiveLeaseTaken, "m%d from worker %d whose lease has %d ticks to run", h.msg, w, k.lease)
	}
	for v := range s.w {
		for j, o := range s.w[v].h {
			if (v > w || v == w && j > i) && o.msg == h.msg && m.groupOf(v) == gi && m.leased(s, v, o) && s.once&didSeek == 0 {
				return violation(TwoOwners, "m%d with worker %d and worker %d, both leases run", h.msg, w, v)
			}
		}
	}
	return nil
}
