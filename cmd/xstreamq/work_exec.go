package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq"
)

const (
	exitReject = 65              // EX_DATAERR of sysexits.h
	termGrace  = 3 * time.Second // from SIGTERM to SIGKILL, at most
	shutGrace  = 500 * time.Millisecond
	snooze     = 2 * time.Second // when this machine cannot start CMD just now
)

// worker runs one command per message.
type worker struct {
	o    *workOptions
	sink *lineSink

	mu    sync.Mutex
	procs map[int]bool // process groups that run
	dead  bool         // killAll was called: start nothing any more
}

func (w *worker) handle(ctx context.Context, m *xstreamq.Message[[]byte]) error {
	env, err := messageEnv(m)
	if err != nil {
		return err
	}
	tail := &tailBuffer{}
	stdout, stderr := &lineBuffer{to: w.sink}, &lineBuffer{to: w.sink}
	cmd := exec.Command(w.o.argv[0], w.o.argv[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = bytes.NewReader(m.Body) // one that CMD does not read is no error: os/exec ignores the broken pipe
	cmd.Stdout = stdout
	cmd.Stderr = io.MultiWriter(stderr, tail)
	cmd.SysProcAttr = ownGroup()
	cmd.WaitDelay = time.Second // what CMD left running in the background may hold its pipes open
	if err := w.start(cmd); err != nil {
		if notHere(err) {
			w.sink.printf("xstreamq: CMD cannot be started, the message waits %s: %v", snooze, err)
			return xstreamq.Snooze(snooze)
		}
		return fmt.Errorf("CMD could not be started: %w", err)
	}
	stopped, err := w.wait(ctx, cmd)
	stdout.flush()
	stderr.flush()
	return result(ctx, stopped, err, lastLine(tail.b))
}

// result turns how CMD ended into what the handler returns. A command that was stopped is not done, whatever it says:
// many programs exit 0 on SIGTERM.
func result(ctx context.Context, stopped bool, err error, last string) error {
	if stopped {
		cause := context.Cause(ctx)
		if last == "" {
			return fmt.Errorf("CMD was stopped: %w", cause)
		}
		return fmt.Errorf("CMD was stopped: %w: %s", cause, last)
	}
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	text := last
	if text == "" {
		text = err.Error()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == exitReject {
		return xstreamq.Reject(errors.New(text))
	}
	return errors.New(text)
}

// notHere tells troubles of this machine, which must not spend the message's attempts, from those of the message (an
// environment too large, a NUL byte in an id).
func notHere(err error) bool {
	for _, e := range []error{
		exec.ErrNotFound, os.ErrNotExist, os.ErrPermission, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (w *worker) start(cmd *exec.Cmd) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		return fmt.Errorf("worker is ending: %w", syscall.EAGAIN)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	w.procs[cmd.Process.Pid] = true
	return nil
}

// wait waits for CMD, and stops it with all it started when the handler's context ends.
func (w *worker) wait(ctx context.Context, cmd *exec.Cmd) (stopped bool, err error) {
	pid := cmd.Process.Pid
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		w.mu.Lock()
		delete(w.procs, pid)
		w.mu.Unlock()
		ended <- err
	}()
	select {
	case err := <-ended:
		return false, err
	case <-ctx.Done():
	}
	terminate(pid)
	grace := min(termGrace, w.o.visibility/4)
	if errors.Is(context.Cause(ctx), xstreamq.ErrShutdown) {
		grace = shutGrace // Stop waits one second for what it cut
	}
	select {
	case err = <-ended:
		kill(pid) // what CMD started may not have heard
	case <-time.After(grace):
		kill(pid)
		err = <-ended
	}
	return true, err
}

func (w *worker) killAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for pid := range w.procs {
		kill(pid)
	}
}

func messageEnv(m *xstreamq.Message[[]byte]) ([]string, error) {
	h, err := encode(orEmpty(m.Headers))
	if err != nil {
		return nil, err
	}
	return []string{
		"XSTREAMQ_ID=" + m.ID,
		"XSTREAMQ_ENTRY_ID=" + m.EntryID,
		"XSTREAMQ_STREAM=" + m.Stream,
		"XSTREAMQ_GROUP=" + m.Group,
		"XSTREAMQ_ATTEMPT=" + strconv.Itoa(m.Attempt),
		"XSTREAMQ_MAX_ATTEMPTS=" + strconv.Itoa(m.MaxAttempts),
		"XSTREAMQ_HEADERS=" + string(h),
	}, nil
}
