//go:build unix

package main

import "syscall"

func terminate(group int) { _ = syscall.Kill(-group, syscall.SIGTERM) }

func kill(group int) { _ = syscall.Kill(-group, syscall.SIGKILL) }
