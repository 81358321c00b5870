package xstreamq_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
)

// workerEnv makes this test binary a worker process; its value is a workerSpec.
const workerEnv = "XSTREAMQ_TEST_WORKER"

type workerSpec struct {
	URL, Prefix string
	Visibility  time.Duration
	Concurrency int
	MaxLost     int
	Hold        bool // handlers wait for a line "go" on standard input
	Wait        bool // the worker does not run before a line "run"
}

// task tells a worker process's handler what to do.
type task struct {
	ID int    `json:"id"`
	Do string `json:"do"` // "" succeed; slow, fail, extend, die (the process, by SIGKILL), hold (as workerSpec.Hold)
}

// workerMain is the worker process. It says "ready", "begin id attempt lost" and "end id outcome" on standard output, drains
// when it is terminated, and ends when its standard input does.
func workerMain(text string) int {
	var spec workerSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		fmt.Println("bad spec:", err)
		return 2
	}
	released, started := make(chan struct{}), make(chan struct{})
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			switch in.Text() {
			case "go":
				close(released)
			case "run":
				close(started)
			}
		}
		os.Exit(3) // the test is gone
	}()
	client, err := xstreamq.Open(spec.URL, xstreamq.Prefix(spec.Prefix), xstreamq.SweepInterval(100*time.Millisecond),
		xstreamq.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		xstreamq.WithHooks(xstreamq.Hooks{HandleEnd: func(_ context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, err error, _ time.Duration) {
			fmt.Println("end", d.ID, o)
		}}))
	if err != nil {
		fmt.Println("open:", err)
		return 2
	}
	handler := func(ctx context.Context, m *xstreamq.Message[task]) error {
		fmt.Println("begin", m.ID, m.Attempt, m.Lost)
		if m.Body.Do == "die" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		if spec.Hold || m.Body.Do == "hold" {
			<-released
		}
		switch m.Body.Do {
		case "slow":
			time.Sleep(300 * time.Millisecond) // long enough to be running when a neighbour kills the process
		case "fail":
			return errors.New("stale failure")
		case "extend":
			err := m.Extend(ctx, time.Hour)
			fmt.Println("extended", m.ID, err == nil)
			return nil
		}
		return nil
	}
	sub, err := xstreamq.NewQueue[task](client, "orders").Subscribe("svc", handler, xstreamq.VisibilityTimeout(spec.Visibility),
		xstreamq.HandlerTimeout(time.Hour), xstreamq.Concurrency(spec.Concurrency), xstreamq.MaxLost(spec.MaxLost),
		xstreamq.WithBackoff(xstreamq.Exponential{Initial: 200 * time.Millisecond, Max: time.Second}))
	if err != nil {
		fmt.Println("subscribe:", err)
		return 2
	}
	if spec.Wait {
		fmt.Println("ready")
		<-started
	} else {
		go func() {
			if sub.Ready(context.Background()) == nil {
				fmt.Println("ready")
			}
		}()
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := client.Run(ctx); err != nil {
		fmt.Println("run:", err)
		return 1
	}
	if err := client.Close(); err != nil {
		return 1
	}
	fmt.Println("stopped")
	return 0
}

// process is a worker process of a test.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
	done  chan struct{} // closed when it has ended
	log   lockedText
}

// process starts a worker and waits until it reads.
func (s *site) process(t *testing.T, spec workerSpec) *process {
	t.Helper()
	spec.URL, spec.Prefix = s.url, s.prefix
	if spec.Concurrency == 0 {
		spec.Concurrency = 4
	}
	if spec.MaxLost == 0 {
		spec.MaxLost = 10
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, lines: make(chan string, 10000), done: make(chan struct{})}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	p.cmd.Stderr = &p.log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		out := bufio.NewScanner(stdout)
		for out.Scan() {
			p.lines <- out.Text()
		}
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.done)
	}()
	t.Cleanup(func() {
		select {
		case <-p.done:
		default:
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		if t.Failed() {
			t.Logf("worker %d:\n%s", p.cmd.Process.Pid, &p.log)
		}
	})
	p.expect("ready", 1)
	return p
}

// expect waits for n lines of a kind and returns their words.
func (p *process) expect(kind string, n int) (out [][]string) {
	p.t.Helper()
	limit := time.After(patience)
	for len(out) < n {
		select {
		case line := <-p.lines:
			if words := strings.Fields(line); words[0] == kind {
				out = append(out, words)
			}
		case <-limit:
			p.t.Fatalf("%d of %d lines %q within %v; its log:\n%s", len(out), n, kind, patience, &p.log)
		}
	}
	return out
}

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// tell sends a line: "go" lets handlers that wait go on.
func (p *process) tell(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// tasks publishes one task for each number from..to.
func (s *site) tasks(from, to int, do string) (ids []string) {
	s.t.Helper()
	for n := from; n <= to; n++ {
		body, err := json.Marshal(task{ID: n, Do: do})
		if err != nil {
			s.t.Fatal(err)
		}
		ids = append(ids, s.add("body", string(body)))
	}
	return ids
}

// lockedText gathers what a process logs.
type lockedText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
