package model

// A drain asks whether a state can still come to a good end: the faults cease, stopped processes stay stopped, handlers deaf
// to their timeout stay deaf, one live worker is enough. It takes the first possible move in this order and lets time pass
// when nothing else is left.
var drainOrder = []uint8{
	thaw, meetMaster, recreateGroup, ack, failIt, hbTake, hbExec, readTake, readExec, skip, start, sendArm, arm,
	returnOK, failDeaf, giveUpOn, releaseOld, oldDone, adoptOwn, hbSend, adoptName, empty, takeForeign, remove, promote, mark, sweep,
	readSend, releaseIt, leave, boot, tick,
}

const notInDrain = 1000

var drainRank = func() (r [kinds]int) {
	for i := range r {
		r[i] = notInDrain
	}
	for i, k := range drainOrder {
		r[k] = i
	}
	return r
}()

// stuck drains a copy of the state; nil when all is done or dead at its end.
func (m *Model) stuck(s State) *Violation {
	q := *m
	q.incs, q.kills = 7, 0 // faults cease; a process can always be started again
	if m.may(failover) {
		s.replica = stepped
	}
	ticks := 0
	for step := range 600 {
		if q.atRest(&s) {
			return nil
		}
		for w := range s.w {
			if k := &s.w[w]; k.alive() && k.h[0].stage == deaf && k.h[1].stage == deaf {
				q.die(&s, w) // health is red: whoever watches it restarts the process
			}
		}
		best, bestN, bestK := notInDrain, State{}, uint8(0)
		q.next(&s, func(n State, mv Move, _ *Violation) {
			if r := drainRank[mv.kind]; r < best && q.useful(&s, mv) {
				best, bestN, bestK = r, n, mv.kind
			}
		})
		if best == notInDrain {
			return violation(Stuck, "after %d steps of a drain nothing more can happen", step)
		}
		if bestK == tick {
			if ticks++; m.may(stutter) && ticks%int(m.maxVis()) == 0 { // again and again a stall that the sweeps see
				q.pass(&bestN, gapLimit+1, true)
			}
		}
		q.norm(&bestN)
		s = bestN
	}
	return violation(Stuck, "a live worker sweeps and yet the messages never end")
}

// useful keeps a drain from going round in circles.
func (m *Model) useful(s *State, mv Move) bool {
	w := int(mv.a)
	switch mv.kind {
	case hbSend:
		return s.w[w].reg == 0 || s.w[w].lease < m.vis[w] || m.may(prompt) && s.w[w].beat == 0
	case promote: // full jitter parts a cohort: one retry at a time
		return s.g[mv.b].retry[0].id == 0
	case releaseIt: // waiting is no reason here, stopping is
		return s.w[w].up == leaving
	case boot:
		for v := range s.w {
			if s.w[v].up == up && m.groupOf(v) == m.groupOf(w) {
				return false
			}
		}
	case readSend:
		n := *s
		for st := range uint8(2) {
			if _, ok := n.deliver(m.groupOf(w), st, m.nameOf(w, s.w[w].inc)); ok {
				return true
			}
		}
		return s.g[m.groupOf(w)].made == 0
	}
	return true
}

// atRest: in every group that a process could serve, nothing waits, pends, is parked or retries any more.
func (m *Model) atRest(s *State) bool {
	for gi := range m.groups {
		g := &s.g[gi]
		served := false
		for w := range s.w {
			served = served || m.groupOf(w) == gi && s.w[w].up != stopped
		}
		if !served || g.recorded == 0 {
			continue
		}
		if g.made == 0 || g.retry[0].id != 0 || g.parked[0].kind != 0 && !m.may(farDue) || g.pel[0].id != 0 || g.rpel[0].id != 0 {
			return false
		}
		for _, e := range s.main {
			if e.id > g.last {
				return false
			}
		}
	}
	return true
}
