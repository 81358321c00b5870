package main

import (
	"bufio"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

// TestMain lets the test run the program itself, in a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv("QUICKSTART") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestQuickStart(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "QUICKSTART=1", "REDIS_URL="+servers.Redis(t))
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "processing 1\n" {
		t.Errorf("it says %q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
