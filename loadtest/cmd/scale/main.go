// Scale fills a server of its own with a million entries, 100,000 dead letters, 100,000 pending ones and 200 groups, and holds
// every page of the dashboard and every read of Admin and of the CLI to its bounds; then it redrives all dead letters, in a process that is killed midway.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq/dash"
	"github.com/xstreamq/xstreamq/loadtest/internal/browser"
	"github.com/xstreamq/xstreamq/loadtest/internal/scale"
	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

var errBroken = errors.New("bounds were broken")

func main() {
	run := measure
	if spec := os.Getenv(scale.ChildEnv); spec != "" {
		run = func() error { return scale.Child(spec, os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func measure() (err error) {
	part := flag.Int("part", 1, "one `n`th of the full size")
	only := flag.Bool("pages", false, "only the dashboard's pages")
	rate := flag.Float64("rate", 4_000, "redrives a second")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "xstreamq-scale-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // only logs
	srv, err := server.Start(dir, "--appendonly", "no")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, srv.Kill()) }()
	size := scale.Full.Part(*part)
	start := time.Now()
	w, err := scale.Fill(ctx, srv.Addr(), size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	fmt.Printf("%+v, filled in %v\n", size, time.Since(start).Round(time.Second))
	broken, err := pages(ctx, w)
	if err != nil {
		return err
	}
	if *only {
		if broken {
			return errBroken
		}
		return nil
	}
	if err := w.WithCLI(ctx, dir); err != nil {
		return err
	}
	fmt.Printf("\n%-30s %10s %10s %9s %12s %12s %12s\n",
		"operation", "time", "server cpu", "commands", "99 % within", "longest", "control's")
	rows, err := w.Measure(ctx)
	for _, r := range rows {
		fmt.Printf("%-30s %10v %10v %9d %12v %12v %12v %s%s\n", r.Name, r.Time.Round(100*time.Microsecond), r.CPU.Round(100*time.Microsecond), r.Commands, r.Usual, r.Longest, r.Control, r.Which, verdict(r))
		broken = broken || r.TooSlow() || r.TooLong()
	}
	if err != nil {
		return err
	}
	d, err := w.Redrive(ctx, srv.Addr(), *rate)
	if err != nil {
		return err
	}
	fmt.Printf("\nredrive of %d: killed after it said %d, %d were left; the rest at %.0f a second, %.0f were asked for; lost %d, doubled %d\n",
		d.Dead, d.AtKill, d.Left, d.Held, d.Rate, d.Lost, d.Doubled)
	if broken || d.RateOff || d.Wrong {
		return errBroken
	}
	return nil
}

// pages opens every page of a dashboard in Chromium, then the live streams of many tabs.
func pages(ctx context.Context, w *scale.World) (broken bool, err error) {
	b, err := browser.Start(ctx)
	if err != nil {
		return false, err
	}
	defer b.Close()
	d := dash.New(w.Admin(), dash.Config{})
	web := httptest.NewServer(d)
	defer func() {
		d.Close()
		web.CloseClientConnections()
		web.Close()
	}()
	times, err := b.Times(web.URL+"/", w.Pages(), scale.Runs)
	if err != nil {
		return false, err
	}
	fmt.Printf("\n%-30s %10s %10s %9s %12s %12s\n", "page in Chromium", "median", "best", "commands", "longest", "control's")
	for _, p := range times {
		row, err := w.Page(ctx, p.Name, p.Asked)
		if err != nil {
			return false, err
		}
		row.Time = p.Median // as the browser has it
		broken = broken || row.TooSlow() || row.TooLong()
		fmt.Printf("%-30s %10v %10v %9d %12v %12v %s%s\n", p.Name, p.Median.Round(time.Millisecond), p.Best.Round(time.Millisecond),
			row.Commands, row.Longest, row.Control, row.Which, verdict(row))
	}
	fmt.Println()
	heap, err := scale.Watch(ctx, web.URL+"/", scale.Tabs)
	fmt.Printf("heap with the live streams of %d tabs: %.1f MiB\n", scale.Tabs, float64(heap)/(1<<20))
	return broken || heap > scale.MostHeap, err
}

func verdict(r scale.Row) string {
	text := ""
	if r.TooSlow() {
		text += fmt.Sprintf("  BROKEN: over %v", scale.MostTime)
	}
	if r.TooLong() {
		text += fmt.Sprintf("  BROKEN: a command over %v", scale.MostCommand)
	}
	return text
}
