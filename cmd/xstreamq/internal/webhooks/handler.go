package webhooks

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// broken saves each body it gets by id and attempt, fails pull_request twice and check_run always. ids of messages
// published without a delay are digits and a dash, so they are file names.
const broken = `#!/bin/sh
set -eu
cat >"$SEEN/$XSTREAMQ_ID.$XSTREAMQ_ATTEMPT"
echo "$XSTREAMQ_ID $XSTREAMQ_ATTEMPT" >>"$SEEN/runs"
case $(head -c 60 "$SEEN/$XSTREAMQ_ID.$XSTREAMQ_ATTEMPT") in
'{"event":"pull_request",'*)
	if [ "$XSTREAMQ_ATTEMPT" -le 2 ]; then
		echo "no reviewer yet, attempt $XSTREAMQ_ATTEMPT" >&2
		exit 75
	fi ;;
'{"event":"check_run",'*)
	echo "looking at the check" >&2
	echo "` + checkRunError + ` $XSTREAMQ_ATTEMPT" >&2
	exit 1 ;;
esac
`

const mended = `#!/bin/sh
set -eu
cat >"$SEEN/$XSTREAMQ_ID.$XSTREAMQ_ATTEMPT"
echo "$XSTREAMQ_ID $XSTREAMQ_ATTEMPT" >>"$SEEN/runs"
`

const checkRunError = "check_run is not understood, attempt"

// seen is what the handler was given.
type seen struct {
	first map[sum]int    // bodies of first attempts
	runs  map[string]int // by id
}

// readSeen reads what a handler saved, and fails when one attempt ran twice or a body changed between attempts.
func readSeen(dir string) (*seen, error) {
	log, err := os.ReadFile(filepath.Join(dir, "runs"))
	if err != nil {
		return nil, err
	}
	s := &seen{first: map[sum]int{}, runs: map[string]int{}}
	ran := map[string]bool{}
	bodies := map[string]sum{}
	for run := range strings.Lines(string(log)) {
		run = strings.TrimSpace(run)
		if ran[run] {
			return nil, fmt.Errorf("attempt %q ran twice", run)
		}
		ran[run] = true
		id, attempt, _ := strings.Cut(run, " ")
		n, err := strconv.Atoi(attempt)
		if err != nil {
			return nil, fmt.Errorf("run %q: %w", run, err)
		}
		body, err := os.ReadFile(filepath.Join(dir, id+"."+attempt))
		if err != nil {
			return nil, err
		}
		h := sha256.Sum256(body)
		if was, ok := bodies[id]; ok && was != h {
			return nil, fmt.Errorf("message %s: the body of attempt %d differs", id, n)
		}
		bodies[id] = h
		s.runs[id]++
		if n == 1 {
			s.first[h]++
		}
	}
	return s, nil
}
