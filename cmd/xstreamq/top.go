package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/cmd/xstreamq/internal/top"
)

func newTop(a *app) *cobra.Command {
	o := top.Options{}
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch all streams and groups live",
		Long: `Watch all streams and groups, full-screen: what goes in and out a second, what waits, is in flight, failed or died.
It only reads. The next question is put --interval after the answer, so that a busy server is asked less often; when the
server goes away the last figures stay, and are taken up again when it is back.

Keys: q quit, ? help, s and S sort, r reverse, / filter, p pause, arrows scroll.`,
		Example: `  xstreamq top
  xstreamq top --sort dead --filter orders --interval 1s`,
		Args:              args(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runTop(cmd.Context(), a, o) },
	}
	cmd.Flags().DurationVar(&o.Interval, "interval", 2*time.Second, "from one answer to the next question")
	cmd.Flags().StringVar(&o.Sort, "sort", "name", "`COLUMN` to sort by: "+strings.Join(top.Columns(), ", "))
	cmd.Flags().StringVar(&o.Filter, "filter", "", "only names with this in STREAM/GROUP")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(top.Columns(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runTop(ctx context.Context, a *app, o top.Options) (err error) {
	switch {
	case a.json || !a.inTTY || !a.outTTY:
		return &usageError{err: errors.New("top needs a terminal"), hint: "xstreamq ls --json, or xstreamq depth STREAM"}
	case o.Interval < top.MinInterval || o.Interval > top.MaxInterval:
		return usagef("--interval is %s: it must be from %s to %s", o.Interval, top.MinInterval, top.MaxInterval)
	case !slices.Contains(top.Columns(), o.Sort):
		return usagef("--sort is %q: it must be one of %s", o.Sort, strings.Join(top.Columns(), ", "))
	}
	c, err := a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	o.Read = func(ctx context.Context) ([]xstreamq.Depth, error) {
		ctx, cancel := a.call(ctx)
		defer cancel()
		return c.Admin().Depths(ctx)
	}
	// A server that is not there, or a wrong password, is an error and no view.
	if o.First, err = o.Read(ctx); err != nil && len(o.First) == 0 {
		return err
	}
	o.In, o.Out, o.Title, o.Color = a.in, a.out, safeURL(a.url), a.color()
	if p, ok := a.out.(pipeWriter); ok {
		o.Out = p.w // the terminal itself, which has a size
	}
	o.Clean = func(s string) string { return escape(a.redact(s)) }
	if err := top.Run(ctx, o); err != nil {
		return fmt.Errorf("top: %w", err)
	}
	return nil
}
