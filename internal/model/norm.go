package model

// norm brings what no longer matters to one form, so that equal states look equal.
func (m *Model) norm(s *State) {
	far := int8(0) // times over a clock step stay apart
	if m.may(clockStepping) {
		far = 7
	}
	top := m.maxVis() + 1 + far
	for gi := range s.g {
		g := &s.g[gi]
		for i := range g.recs {
			r := &g.recs[i]
			r.age = min(r.age, top)
			if r.state == markedDead {
				r.age = 0
			}
		}
		for st := range uint8(2) {
			l := g.list(st)
			for i := range l {
				if l[i].idle = min(l[i].idle, top); !m.is(idleForeign) {
					l[i].idle = 0
				}
			}
		}
		g.swept = min(g.swept, gapLimit+1+far)
		g.hold = max(0, g.hold)
	}
	for w := range s.w {
		k := &s.w[w]
		k.lease = max(0, k.lease)
		if k.hb == 0 {
			k.kind, k.res, k.hbAge = 0, 0, 0
		}
		k.hbAge = min(k.hbAge, m.vis[w])
	}
	s.lag = min(s.lag, top+gapLimit+1)
	if !m.may(failover) { // else an id that is gone can come back
		for gi := range s.g {
			m.renumber(s, gi)
		}
	}
}

// renumber renames ids that only have to differ: retry ids become 1..n in order, ids of entries that are gone become stale.
// Retry entries are deleted with their ack and never come back, so all stale ids behave alike.
func (m *Model) renumber(s *State, gi int) {
	g := &s.g[gi]
	if g.rnext == 0 {
		return
	}
	var to [256]uint8
	n, last := uint8(0), uint8(0)
	for i := range g.retry {
		if id := g.retry[i].id; id != 0 {
			n++
			to[id] = n
			if id <= g.rlast {
				last = n
			}
			g.retry[i].id = n
		}
	}
	ren := func(id *uint8) {
		switch {
		case *id == 0 || *id == stale:
		case to[*id] == 0:
			*id = stale
		default:
			*id = to[*id]
		}
	}
	g.rnext, g.rlast = n, last
	for i := range g.rpel {
		ren(&g.rpel[i].id)
	}
	for i := range g.parked {
		if g.parked[i].kind == fromRetry {
			g.parked[i].src = 0 // r/ members differ by construction
		}
	}
	for i := range g.recs {
		ren(&g.recs[i].suspect)
	}
	for w := range s.w {
		if m.groupOf(w) != gi {
			continue
		}
		k := &s.w[w]
		for i := range k.h {
			if k.h[i].st == 1 {
				ren(&k.h[i].id)
			}
		}
		if k.got.st == 1 {
			ren(&k.got.id)
		}
	}
}
