package model

// handling: one message inside a worker, from the buffer to its settlement.
func (m *Model) handling(s *State, w, i int, emit emitter) {
	switch s.w[w].h[i].stage {
	case buffered, armed:
		m.waiting(s, w, i, emit)
	case arming:
		m.arming(s, w, i, emit)
	case running, overdue, deaf, zombie:
		m.runs(s, w, i, emit)
	case finished, late:
		m.acks(s, w, i, emit)
	case failed:
		m.fails(s, w, i, emit)
	}
	if m.is(nacking) {
		m.claimsBack(s, w, emit)
	}
}

// waiting: it may start; it is released when it waited over a second, or at once when the worker stops.
func (m *Model) waiting(s *State, w, i int, emit emitter) {
	k := &s.w[w]
	h := k.h[i]
	if !k.alive() || h.inc != k.inc || k.reg == 0 {
		return
	}
	if k.up == up {
		m.starting(s, w, i, emit)
	}
	if s.reaches(w) && !m.may(poisoned) {
		n := *s
		if m.release(&n, m.groupOf(w), h.st, h.id, m.nameOf(w, h.inc), h.msg, h.Counts) {
			n.w[w].h[i] = Hold{}
			emit(n, Move{kind: releaseIt, a: uint8(w), b: h.msg}, nil)
		}
	}
}

// arming: a suspect is written only into a field that is there and lives; else the next heartbeat will say gone.
func (m *Model) arming(s *State, w, i int, emit emitter) {
	if !s.reaches(w) {
		return
	}
	h := s.w[w].h[i]
	name := m.nameOf(w, h.inc)
	n := *s
	g := &n.g[m.groupOf(w)]
	if m.is(armReviving) {
		g.setRec(Rec{name: name, state: live})
	}
	k := &n.w[w]
	k.h[i].stage = buffered
	if r := g.rec(name); r != nil && r.state == live {
		r.suspect = h.id
		k.h[i].stage = armed
	} else if h.inc == k.inc {
		k.lease = 0
	}
	emit(n, Move{kind: arm, a: uint8(w), b: h.msg}, nil)
}

// beside says whether h has to wait for o in the other slot: a suspect is alone from the writing of its id until it is
// settled, and all before it is settled (rule 13).
func (m *Model) beside(h, o Hold) bool {
	if o.stage == 0 || o.stage == deaf {
		return false
	}
	one, other := m.suspect(h.Counts), m.suspect(o.Counts)
	if m.is(besideSuspect) {
		return o.stage == running && (one || other) || (o.stage == armed || o.stage == arming) && one && h.stage == buffered
	}
	return o.stage != buffered && (other || one && h.stage == buffered)
}

// starting a handler: with at least half a visibility left (rule 9), a suspect after its id was written, nothing that has
// its marker (rule 19).
func (m *Model) starting(s *State, w, i int, emit emitter) {
	k := &s.w[w]
	h := k.h[i]
	if k.lease < m.half(w) && !m.is(noStartCheck) || m.beside(h, k.h[1-i]) || m.may(deduping) && !s.reaches(w) {
		return
	}
	n := *s
	gi := m.groupOf(w)
	b := uint8(1) << h.msg
	if s.g[gi].seen&b != 0 && !m.is(markerAtRead) {
		n.w[w].h[i].stage = finished
		emit(n, Move{kind: skip, a: uint8(w), b: h.msg}, nil)
		return
	}
	if m.suspect(h.Counts) && h.stage == buffered {
		n.w[w].h[i].stage = arming
		emit(n, Move{kind: sendArm, a: uint8(w), b: h.msg}, nil)
		return
	}
	var bad *Violation
	if s.waived == 0 && k.newMaster == 0 && !s.mine(gi, h.st, h.id, m.nameOf(w, h.inc)) {
		bad = violation(StaleStart, "worker %d starts m%d that it no longer owns", w, h.msg)
	} else if s.g[gi].settled&b != 0 {
		bad = violation(RunAgain, "worker %d starts m%d, whose success was settled before", w, h.msg)
	}
	n.w[w].h[i].stage = running
	if m.may(poisoned) && h.msg == 0 {
		m.die(&n, w)
	}
	emit(n, Move{kind: start, a: uint8(w), b: h.msg}, bad)
}

// runs: a handler that runs returns, is told that its time is up, or is cut by a shutdown.
func (m *Model) runs(s *State, w, i int, emit emitter) {
	k := &s.w[w]
	h := k.h[i]
	gi := m.groupOf(w)
	to := func(stage, kind uint8) {
		n := *s
		if n.w[w].h[i].stage = stage; stage == 0 {
			n.w[w].h[i] = Hold{}
		}
		if kind == returnOK {
			n.g[gi].ok |= 1 << h.msg
		}
		emit(n, Move{kind: kind, a: uint8(w), b: h.msg}, nil)
	}
	if h.stage == zombie {
		to(finished, returnOK)
	}
	if !k.alive() {
		return
	}
	current := h.inc == k.inc
	if m.may(overrunning) && !current && h.stage != deaf && !m.is(cancelledBlocks) { // cancelled by gone and deaf to it: nothing is left to be failed
		to(deaf, giveUpOn)
	}
	switch h.stage {
	case running:
		to(finished, returnOK)
		if m.may(failing) && current {
			to(failed, returnErr)
		} else if m.may(failing) { // cancelled by gone: its error is no failure, the release of the former name settles it
			to(0, returnErr)
		}
		if m.may(overrunning) && current {
			to(overdue, timeUp)
		}
		if m.is(nacking) && s.frozen == 0 && s.mine(gi, h.st, h.id, m.nameOf(w, h.inc)) {
			n := *s
			l := n.g[gi].list(h.st)
			l[pendAt(l, h.id)].own = 0
			n.w[w].h[i].stage = zombie
			emit(n, Move{kind: handBack, a: uint8(w), b: h.msg}, nil)
		}
	case overdue: // whatever it returns, it is a failed attempt
		if current {
			to(failed, lateReturn)
			if !m.is(deafKeeps) {
				m.failsNow(s, w, i, failDeaf, deaf, emit)
			}
		}
	case deaf:
		if m.is(lateResult) {
			to(late, lateReturn)
		} else {
			to(0, lateReturn)
		}
	}
	if k.up == leaving && current && h.stage == running && s.reaches(w) { // cancelled after the drain timeout
		n := *s
		if m.cutOff(&n, gi, m.nameOf(w, h.inc), h) != blocked {
			n.w[w].h[i] = Hold{}
			emit(n, Move{kind: cut, a: uint8(w), b: h.msg}, nil)
		}
	}
}

// settles: a settling call would be executed now. It was sent already, so a stopped process does not keep it from running.
func (m *Model) settles(s *State, w int) bool {
	return s.reaches(w) && (s.w[w].up != down || m.may(strays))
}

// acks: in the main stream a batched XACK while the lease lasts, else the owner-checked script; then the marker (rules 14, 19).
func (m *Model) acks(s *State, w, i int, emit emitter) {
	if !m.settles(s, w) {
		return
	}
	k := &s.w[w]
	h := k.h[i]
	gi := m.groupOf(w)
	name := m.nameOf(w, h.inc)
	bare := h.st == 0 && (h.inc == k.inc && (k.lease > 0 || m.is(bareAckAfterLease)) || m.is(bareAckAfterFailover) && s.replica == stepped)
	n := *s
	var bad *Violation
	l := s.g[gi].list(h.st)
	p := pendAt(l, h.id)
	removed := p >= 0 && (bare || m.is(nacking) || l[p].own == name)
	if removed {
		if l[p].own != name && s.waived == 0 && !m.may(failover) {
			bad = violation(StaleAck, "worker %d acks m%d that another owns now", w, h.msg)
		}
		n.ackIn(gi, h.st, h.id)
	}
	if m.may(deduping) {
		n.g[gi].settled |= 1 << h.msg
		if removed || !m.is(markerIfRemoved) {
			n.g[gi].seen |= 1 << h.msg
		}
	}
	n.w[w].h[i] = Hold{}
	emit(n, Move{kind: ack, a: uint8(w), b: h.msg}, bad)
}

// fails: the owner-checked script; what it does not move for want of room stays and is tried again.
func (m *Model) fails(s *State, w, i int, emit emitter) {
	m.failsNow(s, w, i, failIt, 0, emit)
	h := s.w[w].h[i]
	gi := m.groupOf(w)
	if m.is(ackFirst) && m.settles(s, w) && s.mine(gi, h.st, h.id, m.nameOf(w, h.inc)) && s.once&didFull == 0 {
		n := *s
		n.once |= didFull
		n.ackIn(gi, h.st, h.id)
		n.w[w].h[i] = Hold{}
		emit(n, Move{kind: refusedCopy, a: uint8(w), b: h.msg}, nil)
	}
}

// failsNow executes the fail of a message; then its slot is empty, or kept by a deaf handler.
func (m *Model) failsNow(s *State, w, i int, kind, then uint8, emit emitter) {
	if !m.settles(s, w) {
		return
	}
	n := *s
	h := &n.w[w].h[i]
	if m.fail(&n, m.groupOf(w), m.nameOf(w, h.inc), *h) == blocked {
		return
	}
	msg := h.msg
	if h.stage = then; then == 0 {
		*h = Hold{}
	}
	emit(n, Move{kind: kind, a: uint8(w), b: msg}, nil)
}

// claimsBack: what was handed back is claimed by another under the same id.
func (m *Model) claimsBack(s *State, w int, emit emitter) {
	gi := m.groupOf(w)
	for st := range uint8(2) {
		for x, p := range s.g[gi].list(st) {
			e, ok := s.entry(gi, st, p.id)
			if p.id == 0 || p.own != 0 || !ok {
				continue
			}
			for v := range s.w {
				if s.w[v].up != up || v == w {
					continue
				}
				for y := range s.w[v].h {
					if s.w[v].h[y].stage != 0 {
						continue
					}
					n := *s
					n.g[gi].list(st)[x].own = m.nameOf(v, s.w[v].inc)
					n.w[v].h[y] = Hold{stage: buffered, inc: s.w[v].inc, st: st, id: p.id, msg: e.msg, Counts: e.Counts}
					emit(n, Move{kind: claimBack, a: uint8(v), b: e.msg}, nil)
					break
				}
			}
		}
	}
}
