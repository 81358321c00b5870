package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newRoot(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "xstreamq",
		Short: "Operate queues kept in Redis Streams",
		Long: `Publish, work and look after message queues kept in Redis or Valkey Streams.

On a terminal lists are tables; in a pipe they are tab-separated lines without a head; with --json they are one JSON
document. Data goes to stdout, everything else to stderr.

Exit codes: 0 ok, 1 failed or not found, 2 wrong usage, 3 refused at the prompt, 4 server unreachable or login refused.`,
		Example: `  xstreamq publish orders '{"id":1}'
  xstreamq work orders billing -- ./bill.sh
  xstreamq ls --url redis://queue.internal:6379 --json`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	url := a.getenv("XSTREAMQ_URL")
	if url == "" {
		url = "redis://localhost:6379"
	}
	f := root.PersistentFlags()
	f.StringVarP(&a.url, "url", "u", "", "server `URL`: redis://, rediss://, unix://, redis+sentinel://, redis+cluster:// (default $XSTREAMQ_URL, else redis://localhost:6379)")
	a.url = url // not as the flag's default: --help would print the password that $XSTREAMQ_URL may hold
	f.StringVar(&a.passwordFile, "password-file", "", "`FILE` with the password; else $XSTREAMQ_PASSWORD, else that of the URL")
	f.StringVar(&a.prefix, "prefix", "", "`PREFIX` before every key")
	f.DurationVar(&a.timeout, "timeout", 10*time.Second, "longest wait for one answer of the server")
	f.BoolVarP(&a.json, "json", "j", false, "JSON on stdout, errors as JSON on stderr")
	f.BoolVarP(&a.yes, "yes", "y", false, "do not ask")
	f.BoolVar(&a.noColor, "no-color", false, "no colours (also $NO_COLOR)")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err: err, hint: cmd.CommandPath() + " --help"}
	})
	root.AddCommand(
		newPublish(a), newWork(a), newLs(a), newDepth(a), newPending(a), newConsumers(a), newPeek(a), newGet(a), newWhy(a), newHealth(a), newDoctor(a),
		newDelayed(a), newRetrying(a), newDLQ(a), newCompact(a), newRetain(a), newGroup(a), newPause(a), newResume(a), newVersion(a), newDemo(a), newDash(a), newDemoWorker(a),
	)
	root.AddCommand(newTop(a), newDev(a), newBench(a))
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			completionExamples(cmd)
		}
	}
	return root
}

// knownCommand refuses what is no subcommand, and says what was probably meant.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := cmd.CommandPath() + " --help"
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = cmd.CommandPath() + " " + strings.Join(near, ", or "+cmd.CommandPath()+" ")
	}
	return &usageError{err: fmt.Errorf("%s: no such command: %q", cmd.CommandPath(), args[0]), hint: hint}
}

// parent makes a command that only groups others.
func parent(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	cmd.Args = knownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return &usageError{err: fmt.Errorf("%s: which command?", cmd.CommandPath()), hint: cmd.CommandPath() + " --help"}
	}
	cmd.AddCommand(children...)
	return cmd
}

// args accepts lo to hi arguments; hi < 0 is no upper bound.
func args(lo, hi int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) >= lo && (hi < 0 || len(given) <= hi) {
			return nil
		}
		return &usageError{
			err:  fmt.Errorf("%s: %d arguments given", cmd.CommandPath(), len(given)),
			hint: cmd.UseLine(),
		}
	}
}

func completionExamples(completion *cobra.Command) {
	completion.Example = "  source <(xstreamq completion bash)"
	for _, shell := range completion.Commands() {
		shell.Example = "  xstreamq completion " + shell.Name()
	}
}
