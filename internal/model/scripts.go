package model

// What one script (one atomic step of the server) does to the copies of a message: settling and reclaiming.

// outcome of a move for the client that sent it.
type outcome uint8

const (
	blocked outcome = iota // nothing was moved; it is tried again
	moved
	refused // the entry is no longer pending for this consumer
)

// ackIn removes the pending line, and in the retry stream the entry with it (XACK + XDEL, rule 14); it says whether there was one.
func (s *State) ackIn(gi int, st, id uint8) bool {
	g := &s.g[gi]
	l := g.list(st)
	i := pendAt(l, id)
	if i >= 0 {
		del(l, i)
	}
	if st == 1 {
		if j := entryAt(g.retry[:], id); j >= 0 {
			del(g.retry[:], j)
		}
	}
	return i >= 0
}

// mine: the entry is still pending for this name (rule 16).
func (s *State) mine(gi int, st, id, name uint8) bool {
	l := s.g[gi].list(st)
	i := pendAt(l, id)
	return i >= 0 && l[i].own == name
}

// park puts a copy into the parked set; a taken member name gets a suffix (rule 3).
func (m *Model) park(g *Group, p Parked) bool {
	ok, taken := g.addParked(p)
	if taken && !m.is(takenMovesNothing) {
		p.src += 100
		ok, _ = g.addParked(p)
	}
	return ok
}

// parkByOid names the copy after its stable id and count; every message here carries one and the same oid.
func (g *Group) parkByOid(msg uint8, c Counts) bool {
	for i := range g.parked {
		if g.parked[i].kind != 0 && g.parked[i].rc == c.rc {
			g.parked[i].msg = msg
			return true
		}
	}
	ok, _ := g.addParked(Parked{kind: fromRetry, msg: msg, Counts: c})
	return ok
}

// fail: rc+1, lost 0; dead when rc+1 is over the maximum. The fields come from the settler's memory where the entry was deleted.
func (m *Model) fail(s *State, gi int, name uint8, h Hold) outcome {
	g := &s.g[gi]
	if !m.is(noOwnerCheck) && !s.mine(gi, h.st, h.id, name) {
		return refused
	}
	c := Counts{rc: h.rc + 1, cut: h.cut}
	var ok bool
	switch {
	case c.rc > maxRetries:
		ok = g.addDead(Dead{msg: h.msg, Counts: c, reason: byRetries})
	case m.is(memberOid):
		ok = g.parkByOid(h.msg, c)
	default:
		ok = m.park(g, Parked{kind: h.st + 1, src: h.id, msg: h.msg, Counts: c})
	}
	if !ok {
		return blocked
	}
	t := &g.truth[h.msg]
	t.rc, t.lost = m.counted(s, t.rc, c.rc), 0
	s.ackIn(gi, h.st, h.id)
	return moved
}

// cutOff gives back what a shutdown cut: cut+1 and nothing else; dead when that is over the maximum (rule 17).
func (m *Model) cutOff(s *State, gi int, name uint8, h Hold) outcome {
	g := &s.g[gi]
	if !m.is(noOwnerCheck) && !s.mine(gi, h.st, h.id, name) {
		return refused
	}
	c := h.Counts
	if c.cut++; m.is(cutIsFailure) {
		c.rc++
	}
	var ok bool
	if c.cut > maxCut {
		ok = g.addDead(Dead{msg: h.msg, Counts: c, reason: byCut})
	} else {
		ok = g.addRetry(h.msg, c)
	}
	if !ok {
		return blocked
	}
	t := &g.truth[h.msg]
	t.cut = m.counted(s, t.cut, c.cut)
	s.ackIn(gi, h.st, h.id)
	return moved
}

// counted keeps the truth apart from what the copies say: one more than before. Where duplicates are admitted it follows them.
func (m *Model) counted(s *State, before, said uint8) uint8 {
	if s.admitted() || m.is(memberOid) {
		return said
	}
	return min(before+1, 9)
}

// release gives an entry back under a new id, no counter touched.
func (m *Model) release(s *State, gi int, st, id, name, msg uint8, c Counts) bool {
	if m.is(releaseCosts) {
		c.lost++
	}
	return s.mine(gi, st, id, name) && s.g[gi].addRetry(msg, c) && s.ackIn(gi, st, id)
}

// reclaim moves one entry of a dead owner: to the retry stream, parked when it is a suspect, dead over the maximum (rules 8, 13).
func (m *Model) reclaim(s *State, gi int, st uint8, p Pend) (ok bool) {
	g := &s.g[gi]
	e, found := s.entry(gi, st, p.id)
	if !found { // deleted by others: acked, counted, hooked
		g.waive |= 1 << p.msg
		s.ackIn(gi, st, p.id)
		return true
	}
	c := e.Counts
	c.lost++
	if m.suspect(e.Counts) {
		if r := g.rec(p.own); st != 1 || r == nil || r.suspect != p.id {
			c.lost-- // not the one that was running alone
		}
	}
	switch {
	case c.lost > maxLost:
		ok = g.addDead(Dead{msg: e.msg, Counts: c, reason: byLost})
	case m.suspect(c):
		ok = m.park(g, Parked{kind: st + 1, src: p.id, msg: e.msg, Counts: c})
	default:
		ok = g.addRetry(e.msg, c)
	}
	if t := &g.truth[e.msg]; c.lost > e.lost {
		t.lost = m.counted(s, t.lost, c.lost)
	}
	s.ackIn(gi, st, p.id)
	return ok
}

// beat executes a heartbeat or a registration on the server; a name that is there is not registered again (rule 7).
func (m *Model) beat(s *State, gi int, name, kind uint8) (res uint8, ok bool) {
	g := &s.g[gi]
	r := g.rec(name)
	if kind == hbRegister && r != nil && !m.is(overRegistering) {
		return hbGone, true
	}
	if kind == hbRegister || m.is(reviving) {
		keep := uint8(0)
		if r != nil {
			keep = r.suspect
		}
		return hbOK, g.setRec(Rec{name: name, state: live, suspect: keep})
	}
	if r == nil || r.state != live {
		return hbGone, true
	}
	r.age = 0
	return hbOK, true
}
