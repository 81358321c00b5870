package main

import (
	"strings"
	"testing"
)

func TestExitStatus(t *testing.T) {
	t.Parallel()
	const mutant = "mutant: ack before copy"
	for _, c := range []struct {
		args []string
		want int
		say  string
	}{
		{[]string{"-only", mutant}, 0, "1 scenarios"},
		{[]string{"-only", mutant, "-v"}, 0, "publish m0"},
		{[]string{"-only", mutant, "-scale", "0.000002"}, 1, "LOST was to be found"}, // cut off too early
		{[]string{"-only", "ruled: server clock +3"}, 0, "complete"},
		{[]string{"-only", "no such scenario"}, 2, "0 scenarios"},
		{[]string{"-only", mutant, "-jobs", "0"}, 2, "-jobs 0"},
		{[]string{"-bogus"}, 2, "bogus"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if got := run(c.args, &out, &out); got != c.want || !strings.Contains(out.String(), c.say) {
				t.Errorf("exit status %d, want %d, and %q in:\n%s", got, c.want, c.say, out.String())
			}
		})
	}
}
