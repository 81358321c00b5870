package model

// janitor: promotion, recorded positions, compaction (run by any live worker; here by the server itself).
func (m *Model) janitor(s *State, emit emitter) {
	for gi := range m.groups {
		g := &s.g[gi]
		for i, p := range g.parked {
			if p.kind == 0 || p.kind == fromMain && m.may(farDue) {
				continue
			}
			n := *s
			if n.g[gi].addRetry(p.msg, p.Counts) { // due at any time: each parked copy by itself
				del(n.g[gi].parked[:], i)
				emit(n, Move{kind: promote, a: p.msg, b: uint8(gi)}, nil)
			}
		}
		if m.may(destroying) && g.made == 1 {
			pos := m.need(g) - 1
			if m.is(posIsLast) {
				pos = g.last
			}
			if pos != g.pos {
				n := *s
				n.g[gi].pos = pos
				emit(n, Move{kind: recordPos, a: uint8(gi), b: pos}, nil)
			}
		}
	}
	if m.may(compacting) {
		m.compaction(s, emit)
	}
}

// need is the first id a group still wants: min(oldest pending, successor of last delivered) (rule 26).
func (m *Model) need(g *Group) uint8 {
	n := g.last + 1
	if p := g.pel[0]; p.id != 0 && (p.id < n || m.is(floorElse)) {
		n = p.id // in id order: the first is the oldest
	}
	return n
}

// floorOf is the floor over all groups; ok is false while a recorded group is missing (rule 25).
func (m *Model) floorOf(s *State) (floor uint8, ok bool) {
	floor = 255
	for gi := range m.groups {
		g := &s.g[gi]
		if g.made == 0 {
			if g.recorded == 1 && !m.is(compactMissing) {
				return 0, false
			}
			continue
		}
		floor = min(floor, m.need(g))
	}
	return floor, floor != 255
}

// compaction trims below the floor, and above it what every group has done with.
func (m *Model) compaction(s *State, emit emitter) {
	floor, ok := m.floorOf(s)
	if !ok {
		return
	}
	use := floor
	if m.is(floorStale) {
		if s.floor == 0 {
			n := *s
			n.floor = floor
			emit(n, Move{kind: readFloor, a: floor}, nil)
			return
		}
		use = s.floor
	}
	n := *s
	var bad *Violation
	for i := len(n.main) - 1; i >= 0; i-- {
		if e := n.main[i]; e.id != 0 && e.id < use {
			if v := m.undelivered(s, e); v != nil {
				bad = v
			}
			del(n.main[:], i)
		}
	}
	if n != *s {
		emit(n, Move{kind: compact, a: use}, bad)
	}
	for i, e := range s.main {
		if e.id == 0 || e.id < floor {
			continue
		}
		free := true // above the floor: only what every group has been given and has pending no more
		for gi := range m.groups {
			if g := &s.g[gi]; g.made == 1 && (e.id > g.last || pendAt(g.pel[:], e.id) >= 0) {
				free = false
			}
		}
		if free {
			n := *s
			del(n.main[:], i)
			emit(n, Move{kind: compactAbove, a: e.id}, m.undelivered(s, e))
		}
	}
}

// undelivered: a trimmed entry that a group still has to read.
func (m *Model) undelivered(s *State, e Entry) *Violation {
	for gi := range m.groups {
		if g := &s.g[gi]; g.made == 1 && e.id > g.last {
			return violation(TrimmedUndelivered, "entry %d, which group %d still has to read", e.id, gi)
		}
	}
	return nil
}
