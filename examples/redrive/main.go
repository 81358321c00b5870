// After an incident: put back what died of timeouts between 2 and 4 o'clock for one tenant, gently, after a dry run.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/xstreamq/xstreamq"
)

func main() {
	apply := flag.Bool("apply", false, "really do it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	day := time.Now().Truncate(24 * time.Hour)
	url := cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379")
	if err := run(ctx, url, day.Add(2*time.Hour), day.Add(4*time.Hour), *apply, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string, from, to time.Time, apply bool, out io.Writer) error {
	client, err := xstreamq.Open(url)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing runs on it
	billing := client.Admin().Group("orders", "billing")
	res, err := billing.RedriveAll(ctx, xstreamq.Filter{
		Reason:        xstreamq.ReasonRetries,
		ErrorContains: "timeout",
		After:         from,
		Before:        to,
		Header:        map[string]string{"tenant": "acme"},
		Match:         func(l xstreamq.DeadLetter) bool { return len(l.Body) < 1<<20 },
	}, xstreamq.Bulk{
		Limit: 10_000, Rate: 50, DryRun: !apply,
		Progress: func(done, matched int) { fmt.Fprintf(os.Stderr, "\r%d/%d", done, matched) },
	})
	if err != nil { // killed or cut: run it again, it goes on where it was
		return err
	}
	did := "redriven"
	if !apply {
		did = "would redrive"
	}
	fmt.Fprintf(out, "%s %d, remaining %d, unredrivable %v\n", did, res.Done, res.Remaining, res.Unredrivable)
	for l, err := range billing.DeadLetters(ctx, xstreamq.Filter{Reason: xstreamq.ReasonNoBody}) {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, l.EntryID, l.DiedAt.Format(time.RFC3339), l.Fields)
	}
	return nil
}
