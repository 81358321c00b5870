package model

import (
	"fmt"
	"strings"
)

// AsExpected says whether the search found what its scenario wants: nothing, or a violation of that kind.
func (r Result) AsExpected() bool {
	if r.Model.Want == "" {
		return len(r.Findings) == 0
	}
	for _, f := range r.Findings {
		if f.Kind == r.Model.Want {
			return true
		}
	}
	return false
}

// Report tells what was searched and found; traces are printed where something is not as expected, or where all is wanted.
func (r Result) Report(all bool) string {
	var b strings.Builder
	ok := r.AsExpected()
	verdict, end := "ok", "cut off"
	if !ok {
		verdict = "NOT AS EXPECTED"
	}
	if r.Complete {
		end = "complete"
	}
	fmt.Fprintf(&b, "%-15s %s: depth %d, %d states (%s), %d moves, %d drains, %.1f s\n",
		verdict, r.Model.Title(), r.Depth, r.States, end, r.Moves, r.Drains, r.Took.Seconds())
	if !ok && r.Model.Want != "" {
		fmt.Fprintf(&b, "    %s was to be found\n", r.Model.Want)
	}
	for _, f := range r.Findings {
		if ok && f.Kind != r.Model.Want {
			continue
		}
		fmt.Fprintf(&b, "    %s: %s, in %d steps\n", f.Kind, f.Text, len(f.Trace))
		if !ok || all {
			for i, mv := range f.Trace {
				fmt.Fprintf(&b, "      %2d. %s\n", i+1, mv)
			}
		}
	}
	return b.String()
}

// Title is the scenario's name with what it breaks.
func (m *Model) Title() string {
	if m.Mutants == 0 {
		return "ruled: " + m.Name
	}
	if m.Name == "" {
		return "mutant: " + m.Mutants.String()
	}
	return "mutant: " + m.Mutants.String() + ": " + m.Name
}
