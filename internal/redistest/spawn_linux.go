package redistest

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// A group of its own keeps a terminal's ^C from the server, and lets one signal
// reach the children it forks to save or rewrite its files.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitStopped returns once the kernel has stopped the process: kill(2) returns
// before, and the server may answer a command or two in between.
func awaitStopped(pid int) error {
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return fmt.Errorf("redistest: state of process %d: %w", pid, err)
		}
		// pid (name) state …: the name may itself hold brackets and blanks.
		_, rest, _ := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
		if strings.HasPrefix(rest, "T") {
			return nil
		}
	}
	return fmt.Errorf("redistest: process %d did not stop within 5 s of SIGSTOP", pid)
}
