// Speed measures the queue beside its peers and judges every target: medians of rounds that alternate, on one machine, in
// one run. It prints the table and one line of JSON. Run it in the repository's root, with nothing else running.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/speed"
)

var errMissed = errors.New("not every target is met")

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run() error {
	o := speed.Options{Say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	flag.IntVar(&o.Rounds, "rounds", 5, "whose medians count")
	flag.IntVar(&o.Messages, "messages", 100_000, "of a fast figure")
	flag.DurationVar(&o.Span, "for", 5*time.Second, "of a latency")
	flag.BoolVar(&o.Guard, "guard", false, "a few ratios with wide margins, and fail below them")
	page := flag.String("page", "", "`FILE` whose marked part is written anew")
	note := flag.String("note", "", "a sentence for the page about this run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "speed")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.Binary = filepath.Join(dir, "xstreamq")
	if err := speed.Build(ctx, ".", o.Binary); err != nil {
		return err
	}
	samples, err := speed.Run(ctx, o)
	if err != nil {
		return err
	}
	rows := speed.Table(samples, o.Guard)
	table := speed.Markdown(rows)
	fmt.Print(table)
	if !o.Guard {
		table = "Taken " + time.Now().UTC().Format(time.DateOnly) + ", " + machine(ctx) +
			fmt.Sprintf(", rounds: %d. ", o.Rounds) +
			*note + "\n\n" + table + "\n" + speed.Peers(samples)
	}
	line, err := json.Marshal(map[string]any{"rows": rows, "samples": samples, "machine": machine(ctx)})
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", line)
	if *page != "" {
		if err := speed.Rewrite(*page, table); err != nil {
			return err
		}
	}
	for _, r := range rows {
		if o.Guard && !r.Pass {
			return errMissed
		}
	}
	return nil
}

// machine is what the figures depend on most.
func machine(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "redis-server", "--version").Output()
	if err != nil {
		return fmt.Sprintf("%d cores, %s", runtime.NumCPU(), runtime.Version())
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(string(out), "Redis server v="), " ")
	return fmt.Sprintf("%d cores with the server beside, Redis %s, %s", runtime.NumCPU(), version, runtime.Version())
}
