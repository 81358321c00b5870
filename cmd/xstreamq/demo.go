package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/demo"
)

func newDemo(a *app) *cobra.Command {
	o := demo.Options{}
	dashboard := ""
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch the whole life of messages, on an embedded server",
		Long: `Show the whole life of messages, on a server inside this process that needs nothing installed: orders are published
and handled, some fail and come back after their backoff, a second worker process is killed with SIGKILL and what it
held is recovered, some die, the handler is mended and the dead letters are redriven.

It ends by itself with a tally that it checks message by message, and exits 1 when that does not add up.`,
		Example: `  xstreamq demo
  xstreamq demo --for 2m --dash 127.0.0.1:8090
  xstreamq demo --for 10s --messages 1000 --json`,
		Args:              args(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dashboard != "" {
				o.Dash = demoDash(dashboard)
			}
			return runDemo(cmd.Context(), a, o)
		},
	}
	cmd.Flags().DurationVar(&o.For, "for", 20*time.Second, "about how long it takes")
	cmd.Flags().StringVar(&dashboard, "dash", "", "serve the dashboard of it on this `ADDRESS`, read-only, as long as it takes")
	cmd.Flags().IntVar(&o.Messages, "messages", 300, "orders to publish")
	return withJSON(cmd, jsonObject, "published", "acked", "retried", "lost_leases", "dead", "redriven")
}

func demoDash(addr string) func(*xstreamq.Client) (string, func(), error) {
	return func(c *xstreamq.Client) (string, func(), error) {
		s, err := serveDash(c, dashFlags{addr: addr, readOnly: true, env: "demo"}) // its tally would not add up with a redrive of somebody else's
		if err != nil {
			return "", nil, err
		}
		return s.url, s.stop, nil
	}
}

// newDemoWorker is the process that the demo kills.
func newDemoWorker(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "demo-worker",
		Hidden:  true,
		Short:   "The worker that `xstreamq demo` kills",
		Example: "  xstreamq demo",
		Args:    args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return demo.Worker(cmd.Context(), a.url, a.in, a.out)
		},
	}
}

func runDemo(ctx context.Context, a *app, o demo.Options) error {
	switch {
	case o.For < demo.MinFor || o.For > time.Hour:
		return usagef("--for is %s: it must be from %s to 1h", o.For, demo.MinFor)
	case o.Messages < demo.MinMessages || o.Messages > 10_000:
		return usagef("--messages is %d: it must be from %d to 10000", o.Messages, demo.MinMessages)
	}
	o.Out, o.Live = a.out, a.outTTY
	if a.json {
		o.Out, o.Live = a.err, false
	}
	o.Worker = func(url string) (*demo.Process, error) {
		exe, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return demo.StartProcess(exec.Command(exe, "demo-worker", "--url", url))
	}
	t, err := demo.Run(ctx, o)
	if err != nil {
		err = errors.New(err.Error()) // its own server and its own time: no kind of error of the command line's
	}
	if a.json {
		return ended(err, func() error { return a.printJSON(t) })
	}
	return ended(err, func() error {
		_, err := fmt.Fprintf(a.out, `
published    %5d
acked        %5d
retried      %5d  failed attempts that came back after their backoff
lost leases  %5d  orders held by the killed worker, handled by the other
dead         %5d  orders that failed %d times
redriven     %5d  of them, handled after the fix
`, t.Published, t.Acked, t.Retried, t.LostLeases, t.Dead, 3, t.Redriven)
		return err
	})
}
