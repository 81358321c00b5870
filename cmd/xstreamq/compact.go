package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type compactJSON struct {
	Removed int64               `json:"removed"`
	Floor   string              `json:"floor"`
	HeldBy  []xstreamq.GroupRef `json:"held_by"`
}

func newCompact(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "compact STREAM",
		Short: "Trim what every group is done with",
		Long: `Trim the entries that every group of the stream, foreign ones too, is done with, as far as the stream's retention
allows. Workers do this by themselves; the command is for streams that have none running. It removes nothing that any
group still needs, so it does not ask.`,
		Example: `  xstreamq compact orders --dry-run
  xstreamq compact orders --json`,
		Args:              args(1, 1),
		ValidArgsFunction: a.completeNames(false),
		RunE:              func(cmd *cobra.Command, args []string) error { return runCompact(cmd.Context(), a, args[0], dryRun) },
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be removed")
	return withJSON(cmd, jsonObject, "removed", "floor", "held_by")
}

func runCompact(ctx context.Context, a *app, stream string, dryRun bool) error {
	var c xstreamq.Compaction
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) (err error) {
		c, err = adm.Stream(stream).Compact(ctx, dryRun)
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		if c.HeldBy == nil {
			c.HeldBy = []xstreamq.GroupRef{}
		}
		return a.printJSON(compactJSON{c.Removed, c.Floor, c.HeldBy})
	}
	done := "removed"
	if dryRun {
		done = "would remove"
	}
	line := fmt.Sprintf("%s %d", done, c.Removed)
	if c.Floor != "" {
		line += ", everything from " + c.Floor + " on is still needed"
	}
	if len(c.HeldBy) > 0 {
		groups := make([]string, len(c.HeldBy))
		for i, g := range c.HeldBy {
			groups[i] = g.Group
		}
		line += ", held by " + strings.Join(groups, ", ")
	}
	_, err = fmt.Fprintln(a.out, escape(line))
	return err
}
