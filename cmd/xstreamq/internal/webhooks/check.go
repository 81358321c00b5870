// Package webhooks runs a file of webhook payloads through the xstreamq command line and a private redis-server, and
// checks that every byte and every count is right.
//
// Each line is {"event":NAME,…}. The handler fails twice for pull_request and always for check_run, until it is mended.
package webhooks

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/redisproc"
)

type check struct {
	file, dir, bin, url string
	out                 io.Writer
	in                  *input
	dead                []deadLetter
}

// Run does the whole check of file with the command bin. The report goes to out; an error is the first difference.
func Run(file, bin string, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "xstreamq-webhooks")
	if err != nil {
		return err
	}
	server, err := redisproc.Start()
	if err != nil {
		return err
	}
	defer server.Stop()
	c := &check{file: file, dir: dir, bin: bin, url: server.URL(), out: out}
	if err := c.run(); err != nil {
		c.say("what the handlers got is in %s", dir)
		return err
	}
	return os.RemoveAll(dir)
}

func (c *check) say(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }

func (c *check) run() (err error) {
	if c.in, err = readInput(c.file); err != nil {
		return err
	}
	c.say("%s: %d lines, %d bytes, %d pull_request (fail twice), %d check_run (fail always)",
		filepath.Base(c.file), c.in.lines, c.in.bytes, c.in.pulls, c.in.checks)
	for _, step := range []func() error{c.publish, c.handle, c.deadLetters, c.redrive} {
		if err := step(); err != nil {
			return err
		}
	}
	c.say("all as it must be")
	return nil
}

func (c *check) publish() error {
	var res struct {
		Published int      `json:"published"`
		IDs       []string `json:"ids"`
	}
	start := time.Now()
	if err := c.cli(&res, "publish", "webhooks", "--file", c.file); err != nil {
		return err
	}
	if res.Published != c.in.lines {
		return fmt.Errorf("published %d, the file has %d lines", res.Published, c.in.lines)
	}
	c.say("published     %6d  in %s", res.Published, time.Since(start).Round(time.Millisecond))
	return nil
}

func (c *check) handle() error {
	start := time.Now()
	dir := filepath.Join(c.dir, "first")
	events, err := c.work(broken, dir)
	if err != nil {
		return err
	}
	took := time.Since(start).Round(time.Millisecond)
	seen, err := readSeen(dir)
	if err != nil {
		return err
	}
	if err := sameBodies("handled", seen.first, c.in.bodies); err != nil {
		return err
	}
	three := 0
	for id, n := range seen.runs {
		switch n {
		case 1:
		case 3:
			three++
		default:
			return fmt.Errorf("message %s was handled %d times", id, n)
		}
	}
	if three != c.in.pulls+c.in.checks {
		return fmt.Errorf("%d messages were handled three times, want the %d pull_request and %d check_run", three, c.in.pulls, c.in.checks)
	}
	want := map[string]int{
		"acked":  c.in.lines - c.in.checks,
		"failed": 2 * (c.in.pulls + c.in.checks),
		"dead":   c.in.checks,
	}
	if !maps.Equal(events, want) {
		return fmt.Errorf("events %v, want %v", events, want)
	}
	c.say("handled       %6d  bodies, all byte-identical, in %s", c.in.lines, took)
	c.say("acked         %6d", events["acked"])
	c.say("failed        %6d  attempts, all retried", events["failed"])
	return c.depth(c.in.checks)
}

func (c *check) depth(dead int) error {
	var d depth
	if err := c.cli(&d, "depth", "webhooks", "svc"); err != nil {
		return err
	}
	if d.Lag == nil || *d.Lag != 0 || d.Pending != 0 || d.Retry != 0 || d.Retrying != 0 || d.Dead != int64(dead) {
		lag := "null"
		if d.Lag != nil {
			lag = fmt.Sprint(*d.Lag)
		}
		return fmt.Errorf("depth: lag %s, pending %d, retry %d, retrying %d, dead %d; want 0, 0, 0, 0, %d",
			lag, d.Pending, d.Retry, d.Retrying, d.Dead, dead)
	}
	c.say("depth                 lag 0, pending 0, retry 0, retrying 0, dead %d", dead)
	return nil
}

func (c *check) deadLetters() error {
	if err := c.cli(&c.dead, "dlq", "ls", "webhooks", "svc"); err != nil {
		return err
	}
	bodies := map[sum]int{}
	for _, d := range c.dead {
		bodies[sha256.Sum256(d.Body)]++
		if want := checkRunError + " 3"; d.Attempts != 3 || d.Reason != "retries" || d.Error != want {
			return fmt.Errorf("dead letter %s: attempts %d, reason %q, error %q; want 3, retries, %q", d.ID, d.Attempts, d.Reason, d.Error, want)
		}
	}
	if err := sameBodies("dead letters", bodies, c.in.checkRun); err != nil {
		return err
	}
	c.say("dead letters  %6d  exactly the check_run ones, each after 3 attempts, with its error", len(c.dead))
	return nil
}

func (c *check) redrive() error {
	var res struct {
		Redriven     int      `json:"redriven"`
		Unredrivable []string `json:"unredrivable"`
		Remaining    int      `json:"remaining"`
	}
	if err := c.cli(&res, "dlq", "redrive", "webhooks", "svc", "--all", "--yes"); err != nil {
		return err
	}
	if res.Redriven != c.in.checks || len(res.Unredrivable) != 0 || res.Remaining != 0 {
		return fmt.Errorf("redrive: %+v, want %d redriven and none left", res, c.in.checks)
	}
	dir := filepath.Join(c.dir, "mended")
	events, err := c.work(mended, dir)
	if err != nil {
		return err
	}
	if want := map[string]int{"acked": c.in.checks}; !maps.Equal(events, want) {
		return fmt.Errorf("events after the redrive %v, want %v", events, want)
	}
	seen, err := readSeen(dir)
	if err != nil {
		return err
	}
	for _, d := range c.dead {
		if seen.runs[d.ID] != 1 {
			err = errors.Join(err, fmt.Errorf("message %s was handled %d times after its redrive", d.ID, seen.runs[d.ID]))
		}
	}
	if err = errors.Join(err, sameBodies("redriven", seen.first, c.in.checkRun)); err != nil {
		return err
	}
	c.say("redriven      %6d  all handled by the mended handler, same ids, same bytes", res.Redriven)
	return c.depth(0)
}
