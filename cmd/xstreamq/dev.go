package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/alicebob/miniredis/v2"
	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newDev(a *app) *cobra.Command {
	port, dashboard := 6399, ""
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run an embedded server for local development",
		Long: `Run a server inside this process and its dashboard, for local development: nothing has to be installed, only this machine reaches it,
and all it holds is in memory and gone with it. The URL to connect to is printed on stdout. Ctrl-C ends it.

It speaks the commands that queues need and is no Redis: for anything that must last, run Redis or Valkey.`,
		Example: `  xstreamq dev
  xstreamq dev --port 0    # any free port`,
		Args:              args(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runDev(cmd.Context(), a, port, dashboard) },
	}
	cmd.Flags().IntVar(&port, "port", port, "port to listen on, on 127.0.0.1; 0: any free one")
	cmd.Flags().StringVar(&dashboard, "dash", dashAddr, "`ADDRESS` of its dashboard; \"\": none")
	return cmd
}

func runDev(ctx context.Context, a *app, port int, dashboard string) (err error) {
	if port < 0 || port > 65535 {
		return usagef("--port is %d: it must be from 0 to 65535", port)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	server := miniredis.NewMiniRedis()
	server.ClockTTL(true) // keys expire as time goes by
	if err := server.StartAddr("127.0.0.1:" + strconv.Itoa(port)); err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return &hinted{fmt.Errorf("port %d is in use", port), "xstreamq dev --port 0, or end what listens there"}
		}
		return fmt.Errorf("starting the embedded server: %w", err)
	}
	defer server.Close()
	url := "redis://" + server.Addr()
	out := map[string]string{"url": url}
	if dashboard != "" {
		c, err := xstreamq.Open(url, xstreamq.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			return err
		}
		defer closeClient(c, &err)
		d, err := serveDash(c, dashFlags{addr: dashboard, env: "dev"})
		if err != nil {
			return err
		}
		defer d.stop()
		out["dash"] = d.url
	}
	if a.json {
		err = a.printJSON(out)
	} else {
		_, err = fmt.Fprintln(a.out, url)
	}
	if err != nil {
		return err
	}
	if d := out["dash"]; d != "" {
		a.note("The dashboard: %s", d)
	}
	a.note("An embedded server, in memory. In another terminal: export XSTREAMQ_URL=%s\nCtrl-C ends it, and all it holds.", url)
	<-ctx.Done()
	return nil
}
