//go:build unix && !linux

package redistest

import "syscall"

func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func awaitStopped(int) error { return nil }
