package model

// heartbeat: sent, executed on the server, answer taken; given up and executed late.
func (m *Model) heartbeat(s *State, w int, emit emitter) {
	k := &s.w[w]
	if m.calm[w] || k.newMaster == 1 {
		return
	}
	gi := m.groupOf(w)
	if k.hb == 0 && (k.up == up || k.up == leaving && k.reg == 1) {
		n := *s
		n.w[w].hb, n.w[w].hbAge, n.w[w].kind = sent, 0, hbBeat
		if k.reg == 0 {
			n.w[w].kind = hbRegister
		}
		emit(n, Move{kind: hbSend, a: uint8(w), b: k.inc}, nil)
	}
	if k.hb == sent && s.frozen == 0 {
		n := *s
		if res, ok := m.beat(&n, gi, m.nameOf(w, k.inc), k.kind); ok {
			n.w[w].hb, n.w[w].res = answered, res
			emit(n, Move{kind: hbExec, a: uint8(w)}, nil)
		}
	}
	if k.hb == answered && k.alive() {
		n := *s
		if m.takeAnswer(&n, w) {
			emit(n, Move{kind: hbTake, a: uint8(w)}, nil)
		}
	}
	if m.may(strays) && k.alive() && k.hb != 0 && k.hbAge > 0 { // after a quarter of the visibility
		n := *s
		if m.giveUp(&n, w) {
			emit(n, Move{kind: hbGiveUp, a: uint8(w)}, nil)
		}
	}
	if k.strayName != 0 && s.frozen == 0 {
		n := *s
		if _, ok := m.beat(&n, gi, k.strayName, k.strayKind); ok {
			n.w[w].strayName, n.w[w].strayKind = 0, 0
			emit(n, Move{kind: strayExec, a: uint8(w)}, nil)
		}
	}
}

// takeAnswer: the lease is counted from the moment the heartbeat was sent (rule 9); gone makes a new incarnation.
func (m *Model) takeAnswer(n *State, w int) bool {
	k := &n.w[w]
	k.hb = 0
	if k.res == hbGone {
		return m.reborn(n, w)
	}
	k.reg = 1
	if k.hbAge == 0 {
		k.beat = 1
	}
	k.lease = m.vis[w]
	if !m.is(fromReceipt) {
		k.lease -= k.hbAge
	}
	return true
}

// giveUp: a heartbeat is sent again, a registration of unknown outcome takes a new name (rule 7).
func (m *Model) giveUp(n *State, w int) bool {
	k := &n.w[w]
	if k.kind == hbRegister && !m.is(repeatRegistration) {
		ok := m.reborn(n, w)
		k.old = 0
		return ok
	}
	if k.hb == sent {
		k.strayName, k.strayKind = m.nameOf(w, k.inc), k.kind
	}
	k.hb, k.hbAge = 0, 0
	return true
}
