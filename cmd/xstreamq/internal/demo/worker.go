package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"sync"

	"github.com/xstreamq/xstreamq"
)

// What the second worker tells, one word a line.
const (
	ready   = "ready"
	holding = "holding"
)

// Worker is the second worker's process: it takes messages and finishes none. It ends with in, which its parent holds
// open, if it is not killed before.
func Worker(ctx context.Context, url string, in io.Reader, out io.Writer) (err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	client, err := xstreamq.Open(url, xstreamq.ConsumerPrefix("worker-2"), xstreamq.DrainTimeout(0),
		xstreamq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	var mu sync.Mutex
	tell := func(word string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(out, word)
	}
	_, err = xstreamq.NewQueue[Order](client, stream).Subscribe(group, func(ctx context.Context, _ *xstreamq.Message[Order]) error {
		tell(holding)
		<-ctx.Done()
		return context.Cause(ctx)
	}, xstreamq.VisibilityTimeout(visibility), xstreamq.MaxRetries(maxRetries), xstreamq.Concurrency(heldBySlow), xstreamq.Prefetch(0),
		// Longer than the demo: it must not give up by itself before it is killed.
		xstreamq.HandlerTimeout(handlerTimeout))
	if err != nil {
		return err
	}
	if err := client.Start(ctx); err != nil {
		return err
	}
	tell(ready)
	<-ctx.Done()
	return nil
}

// Process is the second worker as its parent sees it.
type Process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	words chan string
	once  sync.Once
}

// StartProcess starts cmd, which must call Worker.
func StartProcess(cmd *exec.Cmd) (*Process, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, stdin: stdin, words: make(chan string, 64)}
	go func() {
		defer close(p.words)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			p.words <- s.Text()
		}
	}()
	return p, nil
}

// Pid is the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill ends it without warning and returns when it is gone. Idempotent.
func (p *Process) Kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		for range p.words { // Wait must not come before the last read
		}
		_ = p.cmd.Wait() // "signal: killed" is what we asked for
		p.stdin.Close()
	})
}

// waitFor waits until it has told word n times.
func (p *Process) waitFor(ctx context.Context, word string, n int) error {
	for n > 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for worker 2 to be %s: %w", word, context.Cause(ctx))
		case w, ok := <-p.words:
			if !ok {
				return fmt.Errorf("worker 2 ended by itself, before it was %s: %v", word, p.cmd.Stderr)
			}
			if w == word {
				n--
			}
		}
	}
	return nil
}
