package model

// process: start, kill, SIGSTOP, SIGCONT, graceful stop, and what a process looks after in its group.
func (m *Model) process(s *State, w int, emit emitter) {
	k := &s.w[w]
	switch k.up {
	case down:
		if k.inc < m.incs {
			n := *s
			nk := &n.w[w]
			nk.up, nk.reg, nk.lease, nk.old = up, 0, 0, 0
			nk.inc++
			if m.registerCalm(&n, w) {
				emit(n, Move{kind: boot, a: uint8(w), b: nk.inc}, nil)
			}
		}
		return
	case stopped:
		n := *s
		n.w[w].up = up
		emit(n, Move{kind: sigcont, a: uint8(w)}, nil)
		return
	}
	m.ending(s, w, emit)
	if !s.reaches(w) {
		return
	}
	if g := &s.g[m.groupOf(w)]; g.made == 0 && g.recorded == 1 && k.up == up { // the missing group is made again at its recorded position
		n := *s
		ng := &n.g[m.groupOf(w)]
		ng.made, ng.last = 1, g.pos
		if m.is(atDollar) {
			ng.last = s.mnext
		}
		emit(n, Move{kind: recreateGroup, a: uint8(w), b: ng.last}, nil)
	}
	m.formerName(s, w, emit)
	if k.read == readNone && k.reg == 1 && !m.is(noOwnList) {
		m.ownList(s, w, emit)
	}
}

// ending: SIGSTOP, kill -9, and the graceful stop. A stopping process ends when nothing of its own is left, or with handlers
// running when its deadline has come; it takes its name out if nothing is pending for it.
func (m *Model) ending(s *State, w int, emit emitter) {
	k := &s.w[w]
	if m.may(pausing) && !m.calm[w] && s.once&didPause == 0 && k.up == up {
		n := *s
		n.once |= didPause
		n.w[w].up = stopped
		emit(n, Move{kind: sigstop, a: uint8(w)}, nil)
	}
	if s.kills < m.kills && (!m.calm[w] || m.calm[0]) {
		n := *s
		n.kills++
		m.die(&n, w)
		emit(n, Move{kind: kill, a: uint8(w)}, nil)
	}
	if !m.may(quitting) || !s.reaches(w) {
		return
	}
	if k.up == up {
		if k.reg == 1 {
			n := *s
			n.w[w].up = leaving
			emit(n, Move{kind: stop, a: uint8(w)}, nil)
		}
		return
	}
	for _, h := range append(k.h[:], k.got) {
		if h.stage != 0 && h.stage != running && h.stage != overdue && h.stage != deaf {
			return
		}
	}
	n := *s
	m.die(&n, w)
	g := &n.g[m.groupOf(w)]
	if name := m.nameOf(w, k.inc); g.pendOf(name) == 0 {
		g.dropRec(name)
	}
	emit(n, Move{kind: leave, a: uint8(w)}, nil)
}

// formerName: after gone, what stands under the former name is released, one entry a step.
func (m *Model) formerName(s *State, w int, emit emitter) {
	k := &s.w[w]
	if k.old == 0 {
		return
	}
	if !m.releaseAll(s, w, m.nameOf(w, k.old), releaseOld, emit) {
		n := *s
		n.w[w].old = 0
		emit(n, Move{kind: oldDone, a: uint8(w)}, nil)
	}
}

// ownList: own pending entries that it does not hold are released (rule 31).
func (m *Model) ownList(s *State, w int, emit emitter) {
	m.releaseAll(s, w, m.nameOf(w, s.w[w].inc), adoptOwn, emit)
}

// releaseAll releases what pends for a name and is not held under it by the living incarnation; it says whether anything did.
func (m *Model) releaseAll(s *State, w int, name, kind uint8, emit emitter) (some bool) {
	gi := m.groupOf(w)
	for st := range uint8(2) {
		for _, p := range s.g[gi].list(st) {
			if p.id == 0 || p.own != name || kind == adoptOwn && s.w[w].holds(st, p.id) {
				continue
			}
			some = true
			e, ok := s.entry(gi, st, p.id)
			if !ok {
				continue // deleted by others: left to the sweep
			}
			n := *s
			if m.release(&n, gi, st, p.id, name, e.msg, e.Counts) {
				emit(n, Move{kind: kind, a: uint8(w), b: p.msg}, nil)
			}
		}
	}
	return some
}

func (k *Worker) holds(st, id uint8) bool {
	for _, h := range k.h {
		if h.stage != 0 && h.st == st && h.id == id {
			return true
		}
	}
	return false
}

// registerCalm registers a worker whose heartbeats never fail; others send their registration.
func (m *Model) registerCalm(n *State, w int) bool {
	if !m.calm[w] {
		return true
	}
	k := &n.w[w]
	k.reg, k.lease = 1, m.vis[w]
	return n.g[m.groupOf(w)].setRec(Rec{name: m.nameOf(w, k.inc), state: live})
}

// die ends a process: its memory is gone, what it sent may still be executed.
func (m *Model) die(n *State, w int) {
	k := &n.w[w]
	m.abandon(n, w)
	k.up, k.reg, k.lease, k.old, k.newMaster = down, 0, 0, 0, 0
	for i := range k.h {
		if st := k.h[i].stage; !m.may(strays) || st != finished && st != failed { // a settle on the wire may still be executed
			k.h[i] = Hold{}
		}
	}
}

// abandon forgets the calls on their way; with strays the server may still execute them.
func (m *Model) abandon(n *State, w int) {
	k := &n.w[w]
	if m.may(strays) {
		if k.hb == sent {
			k.strayName, k.strayKind = m.nameOf(w, k.inc), k.kind
		}
		if k.read == sent {
			k.strayRead = m.nameOf(w, k.inc)
		}
	}
	k.hb, k.hbAge, k.read, k.got = 0, 0, readNone, Hold{}
}

// reborn goes on as a new incarnation: what was buffered is void, what runs is cancelled and settles under its old name.
func (m *Model) reborn(n *State, w int) bool {
	k := &n.w[w]
	if k.inc >= m.incs {
		return false
	}
	m.abandon(n, w)
	k.old = k.inc
	k.inc++
	k.reg, k.lease = 0, 0
	if !m.registerCalm(n, w) {
		return false
	}
	for i := range k.h {
		if st := k.h[i].stage; st == buffered || st == armed || st == arming {
			k.h[i] = Hold{}
		}
	}
	return true
}
