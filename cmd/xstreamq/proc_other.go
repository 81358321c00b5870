//go:build !unix

package main

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

// Without process groups only CMD itself can be ended.
func terminate(pid int) { kill(pid) }

func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
	}
}
