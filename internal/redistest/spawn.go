//go:build unix

package redistest

import (
	"os/exec"
	"runtime"
	"sync"
)

type spawn struct {
	cmd  *exec.Cmd
	done chan<- error
}

// spawner starts commands on one OS thread that lives as long as the process.
// Linux sends the parent-death signal when the thread that forked the child ends,
// not when the process does, and the Go runtime ends threads as it likes.
var spawner = sync.OnceValue(func() chan<- spawn {
	jobs := make(chan spawn)
	go func() {
		runtime.LockOSThread()
		for j := range jobs {
			j.done <- j.cmd.Start()
		}
	}()
	return jobs
})

func startCommand(cmd *exec.Cmd) error {
	cmd.SysProcAttr = sysProcAttr()
	done := make(chan error)
	spawner() <- spawn{cmd, done}
	return <-done
}
