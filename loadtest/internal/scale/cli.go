package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// WithCLI builds the CLI into dir and has Measure run its commands too: as whole processes, from start to exit.
func (w *World) WithCLI(ctx context.Context, dir string) error {
	w.cli = filepath.Join(dir, "xstreamq")
	out, err := exec.CommandContext(ctx, "go", "build", "-o", w.cli, "github.com/xstreamq/xstreamq/cmd/xstreamq").CombinedOutput()
	if err != nil {
		return fmt.Errorf("scale: build the CLI: %w: %s", err, out)
	}
	return nil
}

// commands are what a person on call types first.
func (w *World) commands() []operation {
	if w.cli == "" {
		return nil
	}
	run := func(name, says string, args ...string) operation {
		return operation{"xstreamq " + name, func(ctx context.Context) error {
			c := exec.CommandContext(ctx, w.cli, append(args, "--url", "redis://"+w.addr)...)
			var stderr bytes.Buffer
			c.Stderr = &stderr
			out, err := c.Output()
			if err != nil {
				return fmt.Errorf("%w: %s", err, stderr.Bytes())
			}
			if !bytes.Contains(out, []byte(says)) {
				return errors.New("it does not say " + says)
			}
			return nil
		}}
	}
	return []operation{
		run("ls", group, "ls"),
		run("depth", group, "depth", stream),
		run("dlq ls", "connection refused", "dlq", "ls", stream, group),
		run("dlq ls, none matches", "", "dlq", "ls", stream, group, "--error", "no such text"),
		run("why: far behind", "waiting", "why", stream, group, w.id(w.Entries-1)),
		run("why: in flight", "in-flight", "why", stream, group, w.id(w.Entries/2-1)),
		run("why: dead", "dead", "why", stream, group, w.id(w.Dead-1)),
		run("why: never was", "unknown", "why", stream, group, "d-1-00"),
		run("get", "abcdef", "get", stream, w.id(w.Entries/2)),
	}
}
