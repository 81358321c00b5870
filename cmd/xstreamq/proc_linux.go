package main

import "syscall"

// ownGroup gives CMD a process group of its own, which Ctrl-C does not reach and which can be ended as a whole, and
// ends it when we die in a way that leaves us no time.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
