package model

// reading: sent, executed, reply taken; lost on the way; executed under a name given up.
func (m *Model) reading(s *State, w int, emit emitter) {
	k := &s.w[w]
	if k.newMaster == 1 {
		return
	}
	free := m.freeSlot(k)
	if k.up == up && k.reg == 1 && k.read == readNone && free >= 0 {
		if m.may(apart) {
			n := *s
			n.w[w].read = sent
			emit(n, Move{kind: readSend, a: uint8(w), b: k.inc}, nil)
		} else if s.frozen == 0 {
			m.execRead(s, w, free, emit)
		}
	}
	if k.read == sent && s.frozen == 0 {
		m.execRead(s, w, free, emit)
	}
	if k.read == answered && k.alive() && free >= 0 {
		n := *s
		nk := &n.w[w]
		nk.h[free], nk.got, nk.read = k.got, Hold{}, readNone
		emit(n, Move{kind: readTake, a: uint8(w)}, nil)
	}
	if k.read == readMissed && k.alive() { // NOGROUP: void, a new incarnation
		n := *s
		n.w[w].read = readNone
		if m.reborn(&n, w) {
			emit(n, Move{kind: readTake, a: uint8(w)}, nil)
		}
	}
	if k.strayRead != 0 && s.frozen == 0 {
		for st := range uint8(2) {
			n := *s
			if h, ok := n.deliver(m.groupOf(w), st, k.strayRead); ok {
				n.w[w].strayRead = 0
				emit(n, Move{kind: strayReadExec, a: uint8(w), b: h.msg}, nil)
			}
		}
	}
}

// freeSlot is where a read entry would go, -1 for nowhere: nothing is read while a suspect runs or is about to (rule 13).
func (m *Model) freeSlot(k *Worker) int {
	free := -1
	for i := range k.h {
		h := &k.h[i]
		if h.stage == 0 && free < 0 {
			free = i
		}
		if h.stage >= running && h.stage != deaf && m.suspect(h.Counts) && !m.is(besideSuspect) {
			return -1
		}
	}
	return free
}

// deliver lets the server answer a read under a name with the first entry of a stream.
func (s *State) deliver(gi int, st, name uint8) (Hold, bool) {
	g := &s.g[gi]
	a, last := s.main[:], &g.last
	if st == 1 {
		a, last = g.retry[:], &g.rlast
	} else if g.made == 0 {
		return Hold{}, false
	}
	var e Entry
	for _, x := range a {
		if x.id > *last && (e.id == 0 || x.id < e.id) {
			e = x
		}
	}
	if e.id == 0 {
		return Hold{}, false
	}
	*last = e.id
	l := g.list(st)
	if i := pendAt(l, e.id); i >= 0 { // moved back under a pending entry: Redis hands it over under its id
		l[i].own, l[i].idle = name, 0
	} else if !addPend(l, Pend{id: e.id, own: name, msg: e.msg}) {
		return Hold{}, false
	}
	return Hold{stage: buffered, st: st, id: e.id, msg: e.msg, Counts: e.Counts}, true
}

// execRead: the server answers a read, from one stream or the other, or with NOGROUP.
func (m *Model) execRead(s *State, w, free int, emit emitter) {
	k := &s.w[w]
	gi := m.groupOf(w)
	if s.g[gi].made == 0 {
		n := *s
		n.w[w].read = readMissed
		emit(n, Move{kind: readExec, a: uint8(w), b: stale}, nil)
		return
	}
	for st := range uint8(2) {
		n := *s
		h, ok := n.deliver(gi, st, m.nameOf(w, k.inc))
		if !ok {
			continue
		}
		h.inc = k.inc
		if m.is(markerAtRead) && s.g[gi].seen&(1<<h.msg) != 0 {
			h.stage = finished
		}
		nk := &n.w[w]
		if m.may(apart) {
			nk.got, nk.read = h, answered
		} else {
			nk.h[free] = h
		}
		if m.may(poisonedReads) && h.msg == 0 { // it kills whoever takes it off the wire
			m.die(&n, w)
		}
		emit(n, Move{kind: readExec, a: uint8(w), b: h.msg, c: st}, nil)
		if m.may(losingReplies) && s.once&didLose == 0 {
			n.once |= didLose
			nk.got, nk.read = Hold{}, readNone
			if !m.may(apart) {
				nk.h[free] = Hold{}
			}
			emit(n, Move{kind: readLost, a: uint8(w)}, nil)
		}
	}
}
