// Command xstreamq operates queues kept in Redis Streams: publish, work, look, redrive.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(start()) }

func start() int {
	// Go ends a process whose stdout is a closed pipe by SIGPIPE; we want to end quietly with 0 instead. Notify and
	// not Ignore: an ignored signal stays ignored in the commands that `work` starts, a caught one does not.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return newApp(os.Stdin, os.Stdout, os.Stderr).execute(context.Background(), os.Args[1:])
}
