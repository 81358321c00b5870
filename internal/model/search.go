package model

import (
	"hash/maphash"
	"slices"
	"time"
)

const maxDepth = 80

// Finding is a violation and the moves that led to it.
type Finding struct {
	Violation
	Trace []Move
}

// Result is what a search found: the first, hence shortest, trace of each kind of violation.
type Result struct {
	Model         *Model
	Findings      []Finding
	States, Depth int
	Moves, Drains int  // successors looked at; states asked whether their messages can still be finished
	Complete      bool // no state within the bounds was left out
	Took          time.Duration

	made [kinds]int // how often each kind of move was looked at
}

// met holds 64-bit hashes of the states met (two states in three million collide with a chance of 1 in 4 million).
type met struct {
	tab  []uint64
	n    int
	mask uint64
}

func newMet(size int) *met { return &met{tab: make([]uint64, size), mask: uint64(size - 1)} }

func (t *met) add(h uint64) bool {
	h = max(h, 1)
	i := h & t.mask
	for ; t.tab[i] != 0; i = (i + 1) & t.mask {
		if t.tab[i] == h {
			return false
		}
	}
	t.tab[i] = h
	if t.n++; t.n*2 > len(t.tab) {
		old := t.tab
		*t = *newMet(2 * len(old))
		for _, h := range old {
			if h != 0 {
				t.add(h)
			}
		}
	}
	return true
}

type step struct {
	parent int32
	mv     Move
}

type node struct {
	s State
	i int32 // its step
}

// search is one search under way.
type search struct {
	*Model
	res   Result
	limit int
	seed  maphash.Seed
	met   *met
	steps []step
	found map[Kind]bool
	layer []node // where it goes on
}

// Search goes breadth first over every interleaving within the bounds, until it has met so many states, or found what the
// scenario wants.
func (m *Model) Search(states int) Result {
	t0 := time.Now()
	own := *m
	own.replicas = &replicas{number: map[Server]uint32{}}
	x := search{Model: &own, limit: states, seed: maphash.MakeSeed(), met: newMet(1024), steps: []step{{parent: -1}}, found: map[Kind]bool{}}
	x.res.Model = m
	s0 := x.initial()
	x.norm(&s0)
	x.met.add(maphash.Comparable(x.seed, s0))
	x.layer = []node{{s0, 0}}
	for len(x.layer) > 0 && x.res.Depth < maxDepth && !x.full() {
		layer := x.layer
		x.layer = nil
		for k := range layer {
			if x.full() {
				break
			}
			at := layer[k].i
			x.next(&layer[k].s, func(n State, mv Move, bad *Violation) { x.take(at, &n, mv, bad) })
		}
		x.res.Depth++
	}
	x.res.Complete = len(x.layer) == 0 && !x.full()
	x.res.States = len(x.steps)
	x.res.Took = time.Since(t0)
	return x.res
}

func (x *search) full() bool { return len(x.steps) >= x.limit || x.Want != "" && x.found[x.Want] }

// take judges one successor; nothing is searched behind a violation.
func (x *search) take(at int32, n *State, mv Move, bad *Violation) {
	x.res.Moves++
	x.res.made[mv.kind]++
	if bad != nil {
		x.note(bad, at, mv)
		return
	}
	x.norm(n)
	if !x.met.add(maphash.Comparable(x.seed, *n)) {
		return
	}
	i := int32(len(x.steps))
	x.steps = append(x.steps, step{at, mv})
	if v := x.check(n); v != nil {
		x.note(v, i, Move{})
		return
	}
	if uint64(i)%x.askOne == 0 && !x.found[Stuck] {
		x.res.Drains++
		if v := x.stuck(*n); v != nil {
			x.note(v, i, Move{})
		}
	}
	x.layer = append(x.layer, node{*n, i})
}

// note keeps the first finding of each kind.
func (x *search) note(v *Violation, i int32, last Move) {
	if x.found[v.Kind] {
		return
	}
	x.found[v.Kind] = true
	var t []Move
	if last.kind != 0 {
		t = append(t, last)
	}
	for ; i > 0; i = x.steps[i].parent {
		t = append(t, x.steps[i].mv)
	}
	slices.Reverse(t)
	x.res.Findings = append(x.res.Findings, Finding{*v, t})
}
