package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

// standIn copies instead of transcoding; for the source "slow" it takes for ever.
const standIn = `#!/bin/sh
[ "$(cat "$2")" != slow ] || { : >"$3.begun"; exec sleep 1000; }
cp "$2" "$3"
`

// A deploy in the middle of a job hands it on at once, with no attempt spent; the next worker does it.
func TestDeployInTheMiddle(t *testing.T) {
	t.Parallel()
	url, dir := servers.Redis(t), t.TempDir()
	ffmpeg, src, dst := filepath.Join(dir, "ffmpeg"), filepath.Join(dir, "in"), filepath.Join(dir, "out")
	write(t, ffmpeg, standIn)
	write(t, src, "slow")
	open := func() *xstreamq.Client {
		c, err := xstreamq.Open(url, xstreamq.DrainTimeout(100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	first, second := open(), open()
	if _, err := xstreamq.NewQueue[Video](first, "videos").Publish(t.Context(), Video{src, dst, 240}); err != nil {
		t.Fatal(err)
	}
	ctx, deploy := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, first, ffmpeg) }()
	appears(t, dst+".begun")
	deploy()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	write(t, src, "fast")
	ctx, stop := context.WithCancel(t.Context())
	go func() { ended <- run(ctx, second, ffmpeg) }()
	appears(t, dst)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	totals, err := second.Admin().Group("videos", "transcoder").Totals(t.Context())
	if err != nil || totals.Failed != 0 || totals.Processed != 1 {
		t.Errorf("totals %+v, %v", totals, err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func appears(t *testing.T, path string) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatal(path, "does not appear")
		}
	}
}
