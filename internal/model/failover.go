package model

// replicas numbers what replicas hold, so that a State can name it. One search owns it.
type replicas struct {
	held   []Server
	number map[Server]uint32
}

func (r *replicas) keep(v Server) uint32 {
	n, ok := r.number[v]
	if !ok {
		r.held = append(r.held, v)
		n = uint32(len(r.held))
		r.number[v] = n
	}
	return n
}

// failovers: a replica falls behind, becomes master without the writes since then, and the clients meet it.
func (m *Model) failovers(s *State, emit emitter) {
	if !m.may(failover) {
		return
	}
	if s.replica == 0 {
		n := *s
		n.replica = m.replicas.keep(s.Server)
		emit(n, Move{kind: fallBehind}, nil)
		return
	}
	if s.replica != stepped {
		n := *s
		m.stepUp(&n)
		emit(n, Move{kind: failOver}, nil)
	}
	for w := range s.w {
		if k := &s.w[w]; k.newMaster == 1 && k.alive() { // its first connection there shows another run_id: a new incarnation
			n := *s
			n.w[w].newMaster = 0
			if m.is(sameAfterFailover) || m.reborn(&n, w) {
				emit(n, Move{kind: meetMaster, a: uint8(w)}, nil)
			}
		}
	}
}

// stepped stands for a replica that has become master.
const stepped = 1<<32 - 1

// stepUp makes the replica master. Messages published since it fell behind are admitted losses; all that the clients have
// seen and done stays as it was, calls on their way are dead.
func (m *Model) stepUp(n *State) {
	before := n.Server
	n.Server = m.replicas.held[n.replica-1]
	for gi := range n.g {
		g := &n.g[gi]
		g.ok |= before.g[gi].ok
		g.waive |= before.g[gi].waive | before.pub&^n.pub
	}
	n.pub = before.pub
	lag := n.lag
	n.replica, n.lag = stepped, 0
	m.pass(n, lag, false)
	for w := range n.w {
		k := &n.w[w]
		if k.up == down {
			continue
		}
		k.newMaster = 1
		k.hb, k.hbAge, k.read, k.got = 0, 0, readNone, Hold{}
		k.strayName, k.strayKind, k.strayRead = 0, 0, 0
	}
}
