package model

// Slots: lists in arrays of fixed size, so that a State stays comparable.

func del[T any](a []T, i int) {
	copy(a[i:], a[i+1:])
	var zero T
	a[len(a)-1] = zero
}

func entryAt(a []Entry, id uint8) int {
	for i := range a {
		if a[i].id == id && id != 0 {
			return i
		}
	}
	return -1
}

func pendAt(a []Pend, id uint8) int {
	for i := range a {
		if a[i].id == id && id != 0 {
			return i
		}
	}
	return -1
}

func addEntry(a []Entry, e Entry) bool {
	for i := range a {
		if a[i].id == 0 {
			a[i] = e
			return true
		}
	}
	return false
}

// addPend keeps the pending list in id order, so that equal states look equal.
func addPend(a []Pend, p Pend) bool {
	if a[len(a)-1].id != 0 {
		return false
	}
	i := len(a) - 1
	for ; i > 0 && (a[i-1].id == 0 || a[i-1].id > p.id); i-- {
		a[i] = a[i-1]
	}
	a[i] = p
	return true
}

// entry finds what a pending line stands for: the main stream's entry or the retry stream's.
func (s *State) entry(gi int, st, id uint8) (Entry, bool) {
	a := s.main[:]
	if st == 1 {
		a = s.g[gi].retry[:]
	}
	if i := entryAt(a, id); i >= 0 {
		return a[i], true
	}
	return Entry{}, false
}

// list is the pending list of the main stream's group (0) or of the retry stream's (1).
func (g *Group) list(st uint8) []Pend {
	if st == 0 {
		return g.pel[:]
	}
	return g.rpel[:]
}

// pendOf counts what is pending for a name in both streams (group missing: none in the main stream).
func (g *Group) pendOf(name uint8) int {
	n := 0
	for st := range uint8(2) {
		for _, p := range g.list(st) {
			if p.id != 0 && p.own == name {
				n++
			}
		}
	}
	return n
}

func (g *Group) rec(name uint8) *Rec {
	for i := range g.recs {
		if g.recs[i].name == name && name != 0 {
			return &g.recs[i]
		}
	}
	return nil
}

func (g *Group) dropRec(name uint8) {
	for i := range g.recs {
		if g.recs[i].name == name && name != 0 {
			del(g.recs[:], i)
			return
		}
	}
}

func (g *Group) setRec(r Rec) bool {
	if x := g.rec(r.name); x != nil {
		*x = r
		return true
	}
	if g.recs[len(g.recs)-1].name != 0 {
		return false
	}
	i := len(g.recs) - 1
	for ; i > 0 && (g.recs[i-1].name == 0 || g.recs[i-1].name > r.name); i-- {
		g.recs[i] = g.recs[i-1]
	}
	g.recs[i] = r
	return true
}

func (g *Group) addRetry(msg uint8, c Counts) bool {
	g.rnext++
	return addEntry(g.retry[:], Entry{g.rnext, msg, c})
}

func (g *Group) addDead(d Dead) bool {
	for i := range g.dead {
		if g.dead[i].id == 0 {
			g.dnext++
			d.id = g.dnext
			g.dead[i] = d
			return true
		}
	}
	return false
}

// addParked adds a copy under its member; taken says that the name is in use (HSETNX refused).
func (g *Group) addParked(p Parked) (ok, taken bool) {
	for i := range g.parked {
		if g.parked[i].kind == p.kind && g.parked[i].src == p.src && p.kind != fromRetry {
			return false, true
		}
		if g.parked[i].kind == 0 {
			g.parked[i] = p
			return true, false
		}
	}
	return false, false
}
