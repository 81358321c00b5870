package redisproc

import (
	"os/exec"
	"syscall"
)

// dieWithParent keeps a killed test from leaving its server behind.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
