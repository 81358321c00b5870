package webhooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

type depth struct {
	Lag      *int64 `json:"lag"`
	Pending  int64  `json:"pending"`
	Retry    int64  `json:"retry"`
	Retrying int64  `json:"retrying"`
	Dead     int64  `json:"dead"`
}

type deadLetter struct {
	ID       string          `json:"id"`
	Attempts int             `json:"attempts"`
	Reason   string          `json:"reason"`
	Error    string          `json:"error"`
	Body     json.RawMessage `json:"body"`
}

// cli runs one xstreamq command with --json and decodes its output into v.
func (c *check) cli(v any, args ...string) error {
	cmd := exec.Command(c.bin, append([]string{"--url", c.url, "--json"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("xstreamq %s: %w: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, v); err != nil {
		return fmt.Errorf("xstreamq %s: %w in %.200s", strings.Join(args, " "), err, out)
	}
	return nil
}

// work runs the worker until the group is empty and returns how many events of each kind it told.
func (c *check) work(script, seenDir string) (map[string]int, error) {
	handler := seenDir + ".sh"
	if err := errors.Join(os.MkdirAll(seenDir, 0o700), os.WriteFile(handler, []byte(script), 0o700)); err != nil {
		return nil, err
	}
	// The handler's own time is longer: on a starved machine a shell may take seconds, and that is no failed attempt here.
	cmd := exec.Command(c.bin, "--url", c.url, "--json", "work", "webhooks", "svc", "--max-retries", "2", "--visibility", "2s",
		"--handler-timeout", "30s", "--backoff", "200ms", "--until-empty", "--", "sh", handler)
	cmd.Env = append(os.Environ(), "SEEN="+seenDir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("xstreamq work: %w: %s", err, stderr.Bytes())
	}
	events := map[string]int{}
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var e struct {
			Event string `json:"event"`
		}
		switch err := dec.Decode(&e); {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return nil, fmt.Errorf("events of xstreamq work: %w", err)
		}
		events[e.Event]++
	}
}
