// Chaos runs workers of the library on a server of its own, breaks both on a seeded schedule, and checks by a ledger that
// nothing was lost. See the README beside go.mod.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/chaos"
	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

var errBroken = errors.New("bounds were broken")

func main() {
	run := trial
	if len(os.Args) == 3 && os.Args[1] == "worker" {
		run = work
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		if errors.Is(err, xstreamq.ErrDrainTimeout) {
			os.Exit(worker.Undrained)
		}
		os.Exit(1)
	}
}

// work is what the program does as a worker process.
func work() error {
	var spec worker.Spec
	if err := json.Unmarshal([]byte(os.Args[2]), &spec); err != nil {
		return err
	}
	return worker.Run(spec)
}

func trial() (err error) {
	name := flag.String("profile", "short", "which `profile`; -list shows them")
	seed := flag.Uint64("seed", 0, "of failures, work and faults; 0 = by chance")
	messages := flag.Int64("messages", 0, "how many instead of the profile's")
	rate := flag.Int("rate", 0, "publishes a second instead of the profile's")
	length := flag.Duration("for", 0, "how long faults go on instead of the profile's")
	dedupe := flag.Duration("dedupe", 0, "DedupeTTL of the workers")
	intake := flag.String("intake", "", "handler, batch or pull: of all workers, instead of the profile's")
	keep := flag.String("keep", "", "an empty or new `directory` for ledger, logs and data, which stays; default: a temporary one, which stays on failure")
	list := flag.Bool("list", false, "list the profiles")
	flag.Parse()
	if *list {
		for _, p := range chaos.Profiles() {
			fmt.Printf("%-10s %s\n", p.Name, p.About)
		}
		return nil
	}
	p, err := chaos.Find(*name)
	if err != nil {
		return err
	}
	if *messages > 0 {
		p.Messages = *messages
	}
	if *rate > 0 {
		p.Rate = *rate
	}
	if *length > 0 {
		p.For = *length
	}
	if *dedupe > 0 {
		p.Dedupe = *dedupe
	}
	if *intake != "" {
		if !slices.Contains(worker.Intakes, worker.Intake(*intake)) {
			return fmt.Errorf("no intake %q: %q", *intake, worker.Intakes)
		}
		p.Intakes = []worker.Intake{worker.Intake(*intake)}
	}
	if *seed == 0 {
		*seed = rand.Uint64()>>32 + 1
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir := *keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "xstreamq-chaos-"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				os.RemoveAll(dir)
			} else {
				fmt.Fprintln(os.Stderr, "chaos: all files are kept in", dir)
			}
		}()
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Fprintf(os.Stderr, "chaos: profile %s, seed %d, at least %v\n", p.Name, *seed, max(p.For, time.Duration(p.Messages)*time.Second/time.Duration(p.Rate)))
	t := &chaos.Trial{Profile: *p, Seed: *seed, Self: self, Dir: dir, Progress: os.Stderr}
	r, err := t.Run(ctx)
	if err != nil {
		return err
	}
	if err := r.Print(os.Stdout); err != nil {
		return err
	}
	if len(r.Broken) > 0 {
		return errBroken
	}
	return nil
}
