package model

import (
	"strings"
	"sync"
	"testing"
)

// TestScenarios searches every scenario to its short bound: as ruled nothing may be found, every mutant must be caught, and
// the moves of every trace lead from the initial state to its violation.
func TestScenarios(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var made [kinds]int
	t.Run("search", func(t *testing.T) {
		for _, m := range Scenarios() {
			t.Run(m.Title(), func(t *testing.T) {
				t.Parallel()
				limit := m.Short
				if m.Want == "" {
					limit /= shrink
				}
				r := m.Search(limit)
				if !r.AsExpected() {
					t.Error(r.Report(true))
				}
				if m.Want == "" && (!r.Complete && r.States < limit || r.Drains == 0) {
					t.Errorf("looked at too little: %s", r.Report(false))
				}
				if m.Want != "" { // the mutant is what made it: as ruled, as many states hold nothing
					if c := m.cured().Search(max(r.States, 1000) / shrink); !c.AsExpected() {
						t.Errorf("without its mutant: %s", c.Report(true))
					}
				}
				if text := r.Report(true); strings.Contains(text, "%!") {
					t.Errorf("a move does not print: %s", text)
				}
				for _, f := range r.Findings {
					if f.Kind != Stuck && !m.replays(f) {
						t.Errorf("%s is not what its trace leads to: %v", f.Kind, f.Trace)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				for k := range made {
					made[k] += r.made[k]
				}
			})
		}
	})
	for k := uint8(1); k < kinds; k++ {
		if made[k] == 0 && shrink == 1 { // shrunk searches do not come so far
			t.Errorf("no scenario makes the move %q", text[k])
		}
	}
}

// cured is the scenario without what it breaks.
func (m *Model) cured() *Model {
	c := *m
	c.Mutants, c.Want = 0, ""
	if m.is(wideSweeps) {
		c.vis = longLease
	}
	return &c
}

// replays follows all states that the moves can lead to (a move may leave open which) and looks for the violation.
func (m *Model) replays(f Finding) bool {
	own := *m
	own.replicas = &replicas{number: map[Server]uint32{}}
	s0 := own.initial()
	own.norm(&s0)
	at := map[State]bool{s0: true}
	seen := false
	for i, want := range f.Trace {
		to := map[State]bool{}
		for s := range at {
			own.next(&s, func(n State, mv Move, bad *Violation) {
				if mv != want {
					return
				}
				own.norm(&n)
				to[n] = true
				if bad == nil {
					bad = own.check(&n)
				}
				seen = seen || i == len(f.Trace)-1 && bad != nil && bad.Kind == f.Kind
			})
		}
		at = to
	}
	return seen
}
