package model

import "testing"

// The mutants that every change of the protocol must keep catching, by the rule that each breaks.
var required = []string{
	"heartbeat that revives a dead owner",
	"reclaimer's own visibility",
	"lease counted from receipt",
	"start without lease check",
	"floor from an earlier step",
	"oldest pending else last delivered",
	"member = oid/rc",
	"release by XNACK",
	"compaction with a recorded group missing",
	"ack before copy",
	"no owner check",
	"one name for two processes",
	"connection-based hold",
	"group recreated at $",
	"seek with entries pending",
	"no suspects",
	"DELCONSUMER uncounted",
	"position = last delivered",
	"no rule 31",
	"release counts as lost",
	"marker only when XACK removed something",
	"cut counts as failure",
	"late result of a timed-out handler used",
	"bare XACK after a new master",
}

// TestRequiredMutants: each has a scenario of its own that must find something.
func TestRequiredMutants(t *testing.T) {
	t.Parallel()
	wanted := map[string]Kind{}
	for _, m := range Scenarios() {
		if m.Mutants.Len() == 1 {
			wanted[m.Mutants.String()] = m.Want
		}
	}
	for _, name := range required {
		if wanted[name] == "" {
			t.Errorf("no scenario breaks %q alone and must find a violation", name)
		}
	}
}

// TestTables: every mutant has a name and is broken somewhere, what is broken must be found, what is ruled breaks nothing.
func TestTables(t *testing.T) {
	t.Parallel()
	if len(names) != len(AllMutants()) {
		t.Errorf("%d names for %d mutants", len(names), len(AllMutants()))
	}
	var broken Mutants
	titles := map[string]bool{}
	for _, m := range Scenarios() {
		broken |= m.Mutants
		if (m.Mutants == 0) != (m.Want == "") {
			t.Errorf("%s: must find %q", m.Title(), m.Want)
		}
		if titles[m.Title()] {
			t.Errorf("%s: there twice", m.Title())
		}
		titles[m.Title()] = true
	}
	if got := Mutants(0).String(); got != "as ruled" {
		t.Errorf("no mutant is called %q", got)
	}
	for _, x := range AllMutants() {
		if x.String() == "" || broken&x == 0 {
			t.Errorf("mutant %q has no name or no scenario", x)
		}
	}
}

// TestMet: a hash is new once, however often the table has grown.
func TestMet(t *testing.T) {
	t.Parallel()
	x := newMet(16)
	for round := range 2 {
		for h := range uint64(5000) {
			if isNew := x.add(h * 0x9e3779b97f4a7c15); isNew != (round == 0) {
				t.Fatalf("round %d: hash %d new: %v", round, h, isNew)
			}
		}
	}
}
