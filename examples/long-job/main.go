// A job of up to two hours: a worker that dies is noticed within 30 s, one that lives is never run beside itself.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq"
)

// Video is a message.
type Video struct {
	Src, Dst string
	Minutes  int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	client, err := xstreamq.Open(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"), xstreamq.DrainTimeout(5*time.Minute))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = client.Close() }() // Run has drained
	if err := run(ctx, client, "ffmpeg"); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, client *xstreamq.Client, ffmpeg string) error {
	videos := xstreamq.NewQueue[Video](client, "videos")
	if _, err := videos.Subscribe("transcoder", transcode(ffmpeg),
		xstreamq.VisibilityTimeout(30*time.Second),
		xstreamq.HandlerTimeout(2*time.Hour),
		xstreamq.Concurrency(2), xstreamq.Prefetch(0), xstreamq.MaxLost(3),
	); err != nil {
		return err
	}
	if err := client.Run(ctx); !errors.Is(err, xstreamq.ErrDrainTimeout) { // jobs that were cut have been handed back
		return err
	}
	return nil
}

func transcode(ffmpeg string) func(context.Context, *xstreamq.Message[Video]) error {
	return func(ctx context.Context, m *xstreamq.Message[Video]) error {
		if m.Body.Minutes > 180 { // this one deserves more than the subscription's two hours
			if err := m.Extend(ctx, 6*time.Hour); err != nil {
				return err
			}
		}
		cmd := exec.CommandContext(ctx, ffmpeg, "-i", m.Body.Src, m.Body.Dst)
		cmd.WaitDelay = time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause // ErrShutdown: handed on at once, no attempt spent; ErrHandlerTimeout: a failed attempt
			}
			return fmt.Errorf("ffmpeg: %w: %.200s", err, out)
		}
		return nil
	}
}
