package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
)

const dashAddr = "127.0.0.1:8090"

type dashFlags struct {
	addr     string
	readOnly bool
	env      string
	hosts    []string
}

func newDash(a *app) *cobra.Command {
	f := dashFlags{}
	cmd := &cobra.Command{
		Use:   "dash",
		Short: "Serve the dashboard",
		Long: `Serve the dashboard for a browser: every group live, messages, dead letters, the server.

By default it listens on this machine alone and is read-only. It knows no login: with --read-only=false everybody who
reaches the address may redrive and purge. For a login mount the same dashboard in a service of yours (package dash).
Its address goes to stdout, once it listens. It runs until a signal ends it.`,
		Example: `  xstreamq dash
  xstreamq dash --read-only=false --environment staging`,
		Args:              args(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runDash(cmd.Context(), a, f) },
	}
	cmd.Flags().StringVar(&f.addr, "addr", dashAddr, "`ADDRESS` to listen on, host:port")
	cmd.Flags().BoolVar(&f.readOnly, "read-only", true, "refuse all that changes something")
	cmd.Flags().StringVar(&f.env, "environment", "", "`NAME` shown as a badge, such as production")
	cmd.Flags().StringSliceVar(&f.hosts, "host", nil, "a further host `NAME` under which a browser may reach it on a loopback address")
	return cmd
}

func runDash(ctx context.Context, a *app, f dashFlags) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c, err := a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	server, err := serveDash(c, f)
	if err != nil {
		return err
	}
	if f.readOnly {
		a.note("read-only; --read-only=false lets it redrive, purge, pause and cancel")
	} else if !server.loopback {
		a.note("it knows no login: everybody who reaches %s may redrive and purge", f.addr)
	}
	if _, err := fmt.Fprintln(a.out, server.url); err != nil {
		server.stop()
		return err
	}
	select {
	case <-ctx.Done():
		server.stop()
		return nil
	case err := <-server.failed:
		return fmt.Errorf("serving on %s: %w", f.addr, err)
	}
}

// dashServer is a dashboard that listens.
type dashServer struct {
	url      string
	loopback bool
	failed   chan error
	stop     func()
}

// serveDash serves the dashboard of c in the background.
func serveDash(c *xstreamq.Client, f dashFlags) (*dashServer, error) {
	l, err := net.Listen("tcp", f.addr)
	if err != nil {
		if _, ok := errors.AsType[*net.AddrError](err); ok {
			return nil, usagef("--addr %q: %w", f.addr, err)
		}
		return nil, &hinted{fmt.Errorf("the dashboard: %w", err), "another --addr; 127.0.0.1:0 takes any free port"}
	}
	d := dash.New(c.Admin(), dash.Config{
		ReadOnly: f.readOnly, Environment: f.env, Hosts: f.hosts, Logger: slog.New(slog.DiscardHandler),
	})
	srv := &http.Server{
		Handler: d, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	s := &dashServer{url: "http://" + l.Addr().String() + "/", failed: make(chan error, 1)}
	tcp, ok := l.Addr().(*net.TCPAddr)
	s.loopback = ok && tcp.IP.IsLoopback()
	go func() { s.failed <- srv.Serve(l) }()
	s.stop = func() {
		d.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = srv.Shutdown(ctx) // nothing that runs longer than this changes anything
	}
	return s, nil
}
