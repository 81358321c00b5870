// Growth measures what a message costs as there is more of something: entries that wait, dead letters, subscriptions, bytes …
// It prints the table, and writes it and a picture for the docs. Run it in the repository's root, with nothing else running.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/growth"
	"github.com/xstreamq/xstreamq/loadtest/internal/speed"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "growth:", err)
		os.Exit(1)
	}
}

func run() error {
	o := growth.Options{Say: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }}
	flag.IntVar(&o.Rounds, "rounds", 5, "whose medians count")
	flag.IntVar(&o.Messages, "messages", 40_000, "of a point in a round; fewer where bodies are large")
	flag.DurationVar(&o.Rest, "rest", 4*time.Second, "of the workers after the rounds, twice, for what they do now and then")
	flag.BoolVar(&o.Full, "full", false, "a queue of ten million too: 2 GiB of memory")
	only := flag.String("only", "", "`AXES` of these, with commas between: "+strings.Join(growth.Names(), ", "))
	page := flag.String("page", "", "`FILE` whose marked part is written anew")
	picture := flag.String("svg", "", "`FILE` for the picture")
	note := flag.String("note", "", "a sentence for the page about this run")
	flag.Parse()
	if *only != "" {
		o.Only = strings.Split(*only, ",")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rows, err := growth.Run(ctx, o)
	if err != nil {
		return err
	}
	table := growth.Markdown(rows)
	fmt.Print(table)
	if *picture != "" {
		if err := os.WriteFile(*picture, []byte(growth.Draw(rows)), 0o644); err != nil {
			return err
		}
	}
	if *page == "" {
		return nil
	}
	return speed.Rewrite(*page, "growth", speed.Taken(ctx, o.Rounds, *note)+"\n\n"+table)
}
