package model

import "slices"

// sweeps: what worker w's sweep does, one script each.
func (m *Model) sweeps(s *State, w int, emit emitter) {
	gi := m.groupOf(w)
	g := &s.g[gi]
	if m.may(gaps) && g.swept != 0 { // a sweep that finds no dead owner
		n := *s
		m.judge(&n, gi)
		emit(n, Move{kind: sweep, a: uint8(w)}, nil)
	}
	held := m.may(gaps) && (g.hold > 0 || gap(g))
	for _, r := range g.recs {
		if r.name == 0 {
			continue
		}
		if r.state != markedDead {
			m.markDead(s, w, r, emit)
		} else if !held {
			m.emptyOwner(s, w, r, emit)
		}
	}
	if !held && !m.is(noForeign) {
		m.unknownOwners(s, w, emit)
	}
}

// gap: nobody swept for so long, or the clock stepped, that ages say nothing.
func gap(g *Group) bool { return g.swept > gapLimit || g.swept < -gapLimit }

// judge is the head of every sweep (rule 12): store the server's time; a gap either way is credited to every heartbeat,
// less one interval of it, so that stalls cannot stop reclaim.
func (m *Model) judge(s *State, gi int) {
	g := &s.g[gi]
	if !m.may(gaps) {
		return
	}
	if gap(g) {
		credit := g.swept - min(1, max(0, g.swept))
		if m.is(holdOnGap) {
			g.hold = m.maxVis() + 1
			credit = 0
		}
		for i := range g.recs {
			if r := &g.recs[i]; r.name != 0 && r.state != markedDead {
				r.age = max(0, r.age-credit)
			}
		}
	}
	g.swept = 0
}

// lives is how long an owner may go without a heartbeat (rule 8).
func (m *Model) lives(g *Group, w int, r Rec) int8 {
	switch {
	case r.state == foreign:
		return m.largest(g, w) + m.grace
	case m.is(reclaimerVis):
		return m.vis[w] + m.grace
	}
	return m.visOf(r.name) + m.grace
}

// markDead: an owner older than its visibility is marked dead, and its only entry its suspect if that is a retry (rule 13).
func (m *Model) markDead(s *State, w int, r Rec, emit emitter) {
	gi := m.groupOf(w)
	limit := m.lives(&s.g[gi], w, r)
	if r.age < limit {
		return
	}
	n := *s
	m.judge(&n, gi)
	g := &n.g[gi]
	nr := g.rec(r.name)
	if g.hold > 0 || nr.age < limit {
		return
	}
	nr.state = markedDead
	if g.pendOf(r.name) == 1 && !m.is(unnamedReader) {
		for _, p := range g.rpel {
			if p.id != 0 && p.own == r.name {
				nr.suspect = p.id
			}
		}
	}
	ow, inc := workerOf(r.name), incOf(r.name)
	var bad *Violation
	if k := &s.w[ow]; m.may(prompt) && k.up == up && k.inc == inc && k.reg == 1 {
		bad = violation(LiveOwnerTaken, "worker %d never stopped beating and is marked dead", ow)
	}
	emit(n, Move{kind: mark, a: uint8(w), b: uint8(ow), c: inc}, bad)
}

// emptyOwner takes what a dead owner holds, one entry a step, and removes it when nothing pends for it any more.
func (m *Model) emptyOwner(s *State, w int, r Rec, emit emitter) {
	gi := m.groupOf(w)
	ow := uint8(workerOf(r.name))
	left := false
	for st := range uint8(2) {
		for _, p := range s.g[gi].list(st) {
			if p.id == 0 || p.own != r.name {
				continue
			}
			left = true
			n := *s
			if m.reclaim(&n, gi, st, p) {
				emit(n, Move{kind: empty, a: uint8(w), b: p.msg, c: ow}, nil)
			}
		}
	}
	if left && !m.is(removeUnchecked) {
		return
	}
	n := *s // count zero, XGROUP DELCONSUMER, HDEL
	g := &n.g[gi]
	g.dropRec(r.name)
	for st := range uint8(2) {
		l := g.list(st)
		for i, p := range slices.Backward(l) {
			if p.own == r.name && p.id != 0 {
				del(l, i) // DELCONSUMER throws away what is pending
			}
		}
	}
	emit(n, Move{kind: remove, a: uint8(w), b: ow, c: incOf(r.name)}, nil)
}

// unknownOwners: whoever has entries pending and no field in the hash is entered there, and dies of age like the others.
func (m *Model) unknownOwners(s *State, w int, emit emitter) {
	gi := m.groupOf(w)
	g := &s.g[gi]
	for st := range uint8(2) {
		for _, p := range g.list(st) {
			if p.id == 0 || p.own == 0 || g.rec(p.own) != nil {
				continue
			}
			ow := uint8(workerOf(p.own))
			n := *s
			if m.is(idleForeign) {
				if p.idle >= m.largest(g, w) && m.reclaim(&n, gi, st, p) {
					emit(n, Move{kind: takeForeign, a: uint8(w), b: p.msg, c: ow}, nil)
				}
			} else if n.g[gi].setRec(Rec{name: p.own, state: foreign}) {
				emit(n, Move{kind: adoptName, a: uint8(w), b: ow, c: incOf(p.own)}, nil)
			}
		}
	}
}

// largest is the largest visibility that an unknown owner may have: the largest that was ever registered, for the owner's
// own record is what is missing.
func (m *Model) largest(g *Group, w int) int8 {
	if !m.is(foreignRegistered) && !m.is(idleForeign) {
		return m.maxVis()
	}
	v := m.vis[w]
	for _, r := range g.recs {
		if r.name != 0 && r.state != foreign {
			v = max(v, m.visOf(r.name))
		}
	}
	return v
}
