package webhooks

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
)

type sum = [sha256.Size]byte

// input is the file as the check sees it: how often each body occurs, and how many lines of the two special kinds.
type input struct {
	lines    int
	bytes    int
	bodies   map[sum]int
	checkRun map[sum]int
	pulls    int
	checks   int
}

// The handler script looks at the same prefixes.
var (
	pullRequest = []byte(`{"event":"pull_request",`)
	checkRun    = []byte(`{"event":"check_run",`)
)

func readInput(file string) (*input, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	in := &input{bodies: map[sum]int{}, checkRun: map[sum]int{}}
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		h := sha256.Sum256(line)
		in.lines++
		in.bytes += len(line)
		in.bodies[h]++
		switch {
		case bytes.HasPrefix(line, pullRequest):
			in.pulls++
		case bytes.HasPrefix(line, checkRun):
			in.checks++
			in.checkRun[h]++
		}
	}
	if in.lines == 0 || in.pulls == 0 || in.checks == 0 {
		return nil, fmt.Errorf("%s has %d lines, %d pull_request and %d check_run: it needs all three", file, in.lines, in.pulls, in.checks)
	}
	return in, nil
}

// sameBodies compares two multisets of bodies.
func sameBodies(what string, got, want map[sum]int) error {
	missing, extra := 0, 0
	for h, n := range want {
		missing += max(0, n-got[h])
	}
	for h, n := range got {
		extra += max(0, n-want[h])
	}
	if missing+extra > 0 {
		return fmt.Errorf("%s: %d bodies missing or changed, %d that were never published", what, missing, extra)
	}
	return nil
}
