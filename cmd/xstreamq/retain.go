package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newRetain(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "retain STREAM [24h|forever|none]",
		Short: "Show or set how long history stays",
		Long: `Show, or set, how long a stream keeps what every group is done with: a duration, forever, or none. History is what
group seek can replay. Workers that subscribe with a retention of their own write theirs when they start.

With --json {"retain_ms"}: 0 is none, -1 forever.`,
		Example: `  xstreamq retain orders
  xstreamq retain orders 24h
  xstreamq retain orders none --json`,
		Args: args(1, 2),
		ValidArgsFunction: func(cmd *cobra.Command, given []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(given) == 1 {
				return []cobra.Completion{"24h", "forever", "none"}, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completeNames(false)(cmd, given, part)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runRetain(cmd.Context(), a, args) },
	}
	return withJSON(cmd, jsonObject, "retain_ms")
}

func runRetain(ctx context.Context, a *app, args []string) error {
	var keep time.Duration
	if len(args) == 2 {
		var err error
		if keep, err = parseRetain(args[1]); err != nil {
			return err
		}
	}
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) (err error) {
		if len(args) == 2 {
			return adm.Stream(args[0]).SetRetention(ctx, keep)
		}
		keep, err = adm.Stream(args[0]).Retention(ctx)
		return err
	})
	if err != nil {
		return err
	}
	ms, text := keep.Milliseconds(), keep.String()
	switch {
	case keep < 0:
		ms, text = -1, "forever"
	case keep == 0:
		text = "none"
	}
	return a.done(map[string]int64{"retain_ms": ms}, "%s", text)
}

func parseRetain(s string) (time.Duration, error) {
	switch s {
	case "forever":
		return -1, nil
	case "none":
		return 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Millisecond {
		return 0, &usageError{err: fmt.Errorf("%q is no time to keep history for", s), hint: "xstreamq retain STREAM 24h, or forever, or none"}
	}
	return d, nil
}
