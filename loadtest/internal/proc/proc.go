// Package proc starts processes and ends those it started, by their id, and no others. What it started does not outlive the
// program, also when that is killed (on Linux).
package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is one that was started here.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}
	at   time.Time // when it had ended
	err  error
}

// starts are run by one thread that lives as long as the program: the system ends a child with the thread that made it.
var starts = sync.OnceValue(func() chan func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range c {
			f()
		}
	}()
	return c
})

// Start starts cmd in a process group of its own.
func Start(cmd *exec.Cmd) (*Process, error) {
	cmd.SysProcAttr = attributes()
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	starts() <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("proc: start %s: %w", cmd.Path, err)
	}
	go func() {
		p.err = cmd.Wait()
		p.at = time.Now()
		close(p.done)
	}()
	return p, nil
}

// Pid is its id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when it has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended is when it was found ended, and how: nil for exit code 0. Only after Done.
func (p *Process) Ended() (time.Time, error) { return p.at, p.err }

// Signal sends a signal to it and what it forked. Of one that has ended, it is nil.
func (p *Process) Signal(sig syscall.Signal) error {
	select {
	case <-p.done: // reaped: its number may be another's by now
		return nil
	default:
	}
	if err := syscall.Kill(-p.Pid(), sig); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("proc: %v to %d: %w", sig, p.Pid(), os.NewSyscallError("kill", err))
	}
	return nil
}

// Kill ends it at once and waits until it is gone.
func (p *Process) Kill() error {
	err := p.Signal(syscall.SIGKILL)
	if err == nil {
		<-p.done
	}
	return err
}

// Stop asks it to end and kills it when it has not within that time; late tells that.
func (p *Process) Stop(within time.Duration) (late bool, err error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return false, err
	}
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.done:
		return false, nil
	case <-t.C:
		return true, p.Kill()
	}
}
