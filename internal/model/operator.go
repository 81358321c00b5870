package model

// operator: groups made, lost, moved; foreign hands; redrive.
func (m *Model) operator(s *State, emit emitter) {
	for gi := range m.groups {
		m.groupChanges(s, gi, emit)
		if m.may(redriving) {
			m.redrives(s, gi, emit)
		}
	}
	if m.may(trimming) && s.once&didTrim == 0 {
		for i, e := range s.main {
			if e.id != 0 && pendAt(s.g[0].pel[:], e.id) >= 0 {
				n := *s
				n.once |= didTrim
				del(n.main[:], i)
				emit(n, Move{kind: foreignTrim, a: e.id}, nil)
			}
		}
	}
}

func (m *Model) groupChanges(s *State, gi int, emit emitter) {
	g := &s.g[gi]
	if g.made == 0 && g.recorded == 0 { // a late group, at the head, recorded in the same script
		n := *s
		n.g[gi].made, n.g[gi].recorded = 1, 1
		for i := range m.msgs {
			if s.pub&(1<<i) != 0 && !s.streamed(uint8(i)) {
				n.g[gi].waive |= 1 << i // trimmed before this group existed
			}
		}
		emit(n, Move{kind: makeGroup, a: uint8(gi)}, nil)
	}
	if m.may(destroying) && g.made == 1 && s.once&didDestroy == 0 {
		n := *s
		n.once |= didDestroy
		n.waived = 1
		n.g[gi].made, n.g[gi].last, n.g[gi].pel = 0, 0, [4]Pend{}
		emit(n, Move{kind: destroyGroup, a: uint8(gi)}, nil)
	}
	if m.may(retryDestroying) && s.once&didDestroy == 0 {
		n := *s
		n.once |= didDestroy
		n.waived = 1
		n.g[gi].rlast, n.g[gi].rpel = 0, [4]Pend{}
		emit(n, Move{kind: destroyRetry, a: uint8(gi)}, nil)
	}
	if m.may(settingID) && g.made == 1 && g.last > 0 && s.once&didSeek == 0 {
		n := *s
		n.once |= didSeek
		n.waived = 1
		n.g[gi].last = 0
		emit(n, Move{kind: setID, a: uint8(gi)}, nil)
	}
	if m.may(seeking) && g.made == 1 && g.last > 0 && s.once&didSeek == 0 && (g.pel[0].id == 0 || m.is(seekPending)) {
		n := *s
		n.once |= didSeek
		n.g[gi].last = 0
		emit(n, Move{kind: seekHead, a: uint8(gi)}, nil)
	}
}

// redrives park dead letters with due = now under x/, copy before delete; counters start again, the marker goes.
func (m *Model) redrives(s *State, gi int, emit emitter) {
	for i, d := range s.g[gi].dead {
		b := uint8(1) << d.msg
		if d.id == 0 || s.g[gi].redriven&b != 0 {
			continue
		}
		n := *s
		g := &n.g[gi]
		if m.park(g, Parked{kind: fromDead, src: d.id, msg: d.msg}) {
			del(g.dead[:], i)
			g.redriven |= b
			g.truth[d.msg] = Counts{}
			g.seen &^= b
			g.settled &^= b
			emit(n, Move{kind: redrive, a: d.msg, b: uint8(gi), c: d.id}, nil)
		}
	}
}

// streamed: the message still stands in the main stream.
func (s *State) streamed(msg uint8) bool {
	for _, e := range s.main {
		if e.id != 0 && e.msg == msg {
			return true
		}
	}
	return false
}
