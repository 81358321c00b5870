package model

// world: messages, time, the server's own troubles.
func (m *Model) world(s *State, emit emitter) {
	for i := range m.msgs {
		if b := uint8(1) << i; s.pub&b == 0 && (i == 0 || s.pub&1 == 1) && s.frozen == 0 {
			n := *s
			n.mnext++
			if addEntry(n.main[:], Entry{id: n.mnext, msg: uint8(i)}) {
				n.pub |= b
				emit(n, Move{kind: publish, a: uint8(i)}, nil)
			}
		}
	}
	if m.mayTick(s) {
		n := *s
		m.pass(&n, 1, true)
		emit(n, Move{kind: tick}, nil)
	}
	if m.may(freezing) {
		if s.frozen == 1 {
			n := *s
			n.frozen = 0
			if m.is(holdByConnection) { // clients would have seen an error; they did not
				for gi := range n.g {
					n.g[gi].swept = 0
				}
			}
			emit(n, Move{kind: thaw}, nil)
		} else if s.once&didFreeze == 0 {
			n := *s
			n.once |= didFreeze
			n.frozen = 1
			emit(n, Move{kind: freeze}, nil)
		}
	}
	if m.may(clockStepping) && s.once&didClock == 0 && s.frozen == 0 {
		n := *s
		n.once |= didClock
		m.pass(&n, m.clockStep, false)
		emit(n, Move{kind: clockStep, a: uint8(m.clockStep)}, nil)
	}
	if m.may(losingHash) && s.once&didClock == 0 {
		n := *s
		n.once |= didClock
		n.g[0].recs = [8]Rec{}
		emit(n, Move{kind: looseHash}, nil)
	}
}

// mayTick: in a prompt scenario time waits until every live worker's heartbeat of this tick was answered and a sweep ran;
// while the server stands still it waits for nothing.
func (m *Model) mayTick(s *State) bool {
	if !m.may(prompt) || s.frozen == 1 {
		return true
	}
	for w := range s.w {
		if k := &s.w[w]; k.up == up {
			if k.beat == 0 || m.may(gaps) && s.g[m.groupOf(w)].swept != 0 {
				return false
			}
		}
	}
	return true
}

// pass lets d ticks go by on the server, and on the clients where they see it too (a clock step is the server's alone).
func (m *Model) pass(n *State, d int8, clients bool) {
	for gi := range m.groups {
		g := &n.g[gi]
		for i := range g.recs {
			if g.recs[i].name != 0 {
				g.recs[i].age += d
			}
		}
		for st := range uint8(2) {
			l := g.list(st)
			for i := range l {
				if l[i].id != 0 {
					l[i].idle = max(0, l[i].idle+d) // Redis answers idle below zero as zero
				}
			}
		}
		if m.may(gaps) {
			g.swept += d
		}
		g.hold -= d
	}
	if !clients {
		return
	}
	if n.replica != 0 {
		n.lag += d
	}
	for w := range n.w {
		k := &n.w[w]
		k.lease -= d
		k.hbAge += d
		k.beat = 0
		if m.calm[w] && k.alive() && n.reaches(w) { // heartbeats without incident
			if r := n.g[m.groupOf(w)].rec(m.nameOf(w, k.inc)); r != nil {
				r.age = 0
			}
			k.lease = m.vis[w]
		}
	}
}
