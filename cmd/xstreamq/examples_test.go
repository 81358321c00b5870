//go:build unix

package main

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// What the examples use beside xstreamq, each as little as it takes: the test is of our commands.
var exampleTools = map[string]string{
	"bill.sh": "cat >/dev/null",
	"jq":      "cat >/dev/null",
	"vim":     "true",
	"python3": "cat >/dev/null",
	"tail":    `echo '{"event":1}'`,
}

// endless are the examples that run until they are told to end; the first line they print says that they run.
var endless = regexp.MustCompile(`^xstreamq (work|dash|dev)( |$)`)

// TestExamplesRun runs every example of every --help, as it stands, in a shell, on a server that has what they speak of.
func TestExamplesRun(t *testing.T) {
	t.Parallel()
	s, rdb := testServer(t)
	bin := exampleTool(t)
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		for line := range strings.Lines(cmd.Example) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			seen++
			delayed := exampleState(t, s.URL(), rdb) // anew: examples remove and move things
			line = exampleLine(line, s.URL(), delayed)
			t.Run(line, func(t *testing.T) {
				if strings.HasPrefix(line, "xstreamq demo") { // takes its time, and has a server of its own
					t.Parallel()
				}
				runExample(t, bin, s.URL(), line, nil)
			})
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(testRoot())
	if seen < 50 {
		t.Errorf("only %d examples", seen)
	}
}

// exampleLine is the line as a test can run it: on its server, on free ports, and as short as it can be.
func exampleLine(line, url, delayed string) string {
	line = strings.ReplaceAll(line, "d-1760000000000-0123456789abcdef", delayed)
	line = strings.ReplaceAll(line, "redis://queue.internal:6379", url)
	line = strings.Replace(line, "xstreamq dash", "xstreamq dash --addr 127.0.0.1:0", 1) // the usual port may be taken
	line = strings.NewReplacer("127.0.0.1:8090", "127.0.0.1:0", "--for 2m", "--for 10s").Replace(line)
	line = strings.Replace(line, "xstreamq dev", "xstreamq dev --port 0 --dash 127.0.0.1:0", 1)
	if strings.HasPrefix(line, "xstreamq bench") {
		line = strings.Replace(line, "--for 30s", "--for 200ms", 1)
		line = strings.Replace(line, "bench", "bench --messages 40 --rate 100 --for 200ms", 1)
	}
	if strings.HasPrefix(line, "xstreamq top") { // on a terminal, and ended by its key
		line = "printf q | script -qec '" + line + "' /dev/null"
	}
	return line
}

// exampleTool puts what the examples use beside xstreamq into a directory for the PATH.
func exampleTool(t *testing.T) (bin string) {
	t.Helper()
	bin = t.TempDir()
	for name, script := range exampleTools {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil { //nolint:gosec // to be run
			t.Fatal(err)
		}
	}
	return bin
}

// exampleState puts there what the examples name.
func exampleState(t *testing.T, url string, rdb *redis.Client) (delayed string) {
	t.Helper()
	redo := func(args ...any) {
		if err := rdb.Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	redo("flushall")
	redo("xadd", "{orders}", "1760000000000-0", "body", `{"id":1}`)
	redo("xadd", "{events}", "*", "body", "1")
	for _, args := range [][]string{{"group", "create", "orders", "billing"}, {"group", "create", "orders", "search", "--from", "tail"}} {
		if code, _, stderr := run(t, url, false, args...); code != 0 {
			t.Fatal(stderr)
		}
	}
	redo("xgroup", "createconsumer", "{orders}", "billing", "old-worker-1")
	redo("xadd", "{orders}.billing.dlq", "1760000000000-0", "body", `{"id":0}`, "reason", "retries", "err", "timeout", "rc", "6")
	code, out, stderr := run(t, url, false, "publish", "reminders", `{"to":"ada"}`, "--delay", "1h")
	if code != 0 {
		t.Fatal(stderr)
	}
	return strings.TrimSpace(out)
}

// runExample runs the line in a directory that has these files, and those that examples name.
func runExample(t *testing.T, bin, url, line string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "orders.ndjson"), []byte("{\"id\":2}\n{\"id\":3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"bill.sh", "bill.py"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("#!/bin/sh\ncat >/dev/null\n"), 0o700); err != nil { //nolint:gosec // to be run
			t.Fatal(err)
		}
	}
	shell, err := exec.LookPath("bash") // one example is for its process substitution
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), shell, "-c", "set -o pipefail; "+line)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XSTREAMQ_URL="+url, "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	pipe, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pipe.Close() }() // only read
	cmd.Stdout, cmd.Stderr = end, end
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = end.Close() // the command has its own
	lines := bufio.NewScanner(pipe)
	var output []string
	told := false
	for lines.Scan() { // until all ends of the pipe are closed
		output = append(output, lines.Text())
		if !told && endless.MatchString(line) && !strings.Contains(line, "--until-empty") {
			told = true // the first line says that it runs
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && told {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			err = nil // the shell, which got the signal too
		}
	}
	if exit != nil && (strings.HasPrefix(line, "xstreamq health") || strings.HasPrefix(line, "xstreamq doctor")) && (exit.ExitCode() == exitFailed || exit.ExitCode() == nagiosCritical) {
		err = nil // its answer: dead letters are there
	}
	if err != nil {
		t.Errorf("%v\n%s", err, strings.Join(output, "\n"))
	}
}
