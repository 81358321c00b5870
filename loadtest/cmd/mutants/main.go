// Mutants runs the chaos trials on workers that have a rule taken out, and fails when a trial does not notice.
// Run it in the repository's root.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/xstreamq/xstreamq/loadtest/internal/chaos"
	"github.com/xstreamq/xstreamq/loadtest/internal/mutant"
)

var errSurvived = errors.New("a mutant was not noticed")

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("only", "", "`names` of mutants, separated by commas; default: all")
	seed := flag.Uint64("seed", 1, "of the trials")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	var names []string
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	tried, survived := 0, false
	for _, m := range mutant.All() {
		if names != nil && !slices.Contains(names, m.Name) {
			continue
		}
		tried++
		r, err := trial(ctx, root, m, *seed)
		if err != nil {
			return err
		}
		noticed := slices.ContainsFunc(m.Finds, func(kind string) bool { return r.Verdict.Count(kind) > 0 })
		survived = survived || !noticed
		fmt.Printf("%-28s %-10s noticed %v: %s\n", m.Name, m.Profile, noticed, strings.Join(r.Broken, "; "))
	}
	if tried != len(names) && names != nil || tried == 0 {
		return fmt.Errorf("of %q only %d are mutants", names, tried)
	}
	if survived {
		return errSurvived
	}
	return nil
}

// trial builds the mutant and runs its profile.
func trial(ctx context.Context, root string, m mutant.Mutant, seed uint64) (*chaos.Report, error) {
	dir, err := os.MkdirTemp("", "xstreamq-mutant-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program, err := m.Build(root, dir)
	if err != nil {
		return nil, err
	}
	p, err := chaos.Find(m.Profile)
	if err != nil {
		return nil, err
	}
	p.For = m.For
	p.Messages = int64(p.Rate) * int64(p.For.Seconds())
	p.Bounds.Drain /= 6 // what it waits for may never come
	return (&chaos.Trial{Profile: *p, Seed: seed, Self: program, Dir: dir, Progress: io.Discard}).Run(ctx)
}
