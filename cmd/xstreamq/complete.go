package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

// completeNames completes STREAM, and GROUP where the command has one, from the server. It is silent on errors: a
// shell shows whatever is printed.
func (a *app) completeNames(withGroup bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(given) > 1 || len(given) == 1 && !withGroup {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		a.timeout = min(a.timeout, 2*time.Second)
		var names []cobra.Completion
		_ = a.admin(cmd.Context(), func(ctx context.Context, adm *xstreamq.Admin) error {
			refs, err := adm.Registered(ctx)
			for _, r := range refs {
				name := r.Stream
				if len(given) == 1 {
					if r.Stream != given[0] {
						continue
					}
					name = r.Group
				}
				if name != "" && clean(name, "") {
					names = append(names, name)
				}
			}
			return err
		})
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeWords completes a flag that takes one of a few words.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag does not exist
	}
}

// completeConsumer completes STREAM, GROUP and NAME.
func (a *app) completeConsumer(cmd *cobra.Command, given []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(given) != 2 {
		return a.completeNames(true)(cmd, given, part)
	}
	a.timeout = min(a.timeout, 2*time.Second)
	var names []cobra.Completion
	_ = a.admin(cmd.Context(), func(ctx context.Context, adm *xstreamq.Admin) error {
		all, err := adm.Group(given[0], given[1]).Consumers(ctx)
		for _, c := range all {
			if clean(c.Name, "") {
				names = append(names, c.Name)
			}
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
