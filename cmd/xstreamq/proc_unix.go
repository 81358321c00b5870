//go:build unix && !linux

package main

import "syscall"

// ownGroup gives CMD a process group of its own, which Ctrl-C does not reach and which can be ended as a whole.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
