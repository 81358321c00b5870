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
	"os/signal"
	"path/filepath"
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
		table = speed.Taken(ctx, o.Rounds, *note) + "\n\n" + table + "\n" + speed.Peers(samples)
	}
	line, err := json.Marshal(map[string]any{"rows": rows, "samples": samples, "machine": speed.Machine(ctx)})
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", line)
	if *page != "" {
		if err := speed.Rewrite(*page, "speed", table); err != nil {
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
