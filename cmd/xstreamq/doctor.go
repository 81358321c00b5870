package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type findingJSON struct {
	Check  string `json:"check"`
	Level  string `json:"level"`
	Detail string `json:"detail"`
	Fix    string `json:"fix"`
}

func newDoctor(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "doctor",
		Short: "Is this Redis fit for a queue, and are its streams in order",
		Long: `Look at the server, eviction policy, persistence, replicas, version, memory, and at what is stored, ids ahead of the
clock, keys that expire, stale consumers, groups that hold compaction up, dead letters that grow, streams that nobody
compacts; and say of each what is wrong and what to do. It changes nothing.

Levels: ok; warn; fail, which makes the exit code 1; unknown, where the server does not tell: managed ones hide their
settings, and a user may lack the right to ask. Columns: check, level, what was seen, what to do.`,
		Example: `  xstreamq doctor
  xstreamq doctor --json | jq '.[] | select(.level != "ok")'`,
		Args:              args(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), a) },
	}, jsonArrayOf, "check", "level", "detail", "fix")
}

func runDoctor(ctx context.Context, a *app) error {
	var all []xstreamq.Finding
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) (err error) {
		all, err = adm.Doctor(ctx)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case a.json:
		list := make([]findingJSON, len(all))
		for i, f := range all {
			list[i] = findingJSON{f.Check, f.Level, f.Detail, f.Fix}
		}
		err = a.printJSON(list)
	case a.outTTY:
		err = printFindings(a, all)
	default:
		t := a.table("CHECK", "LEVEL", "DETAIL", "FIX")
		for _, f := range all {
			if err := t.row(f.Check, f.Level, f.Detail, f.Fix); err != nil {
				return err
			}
		}
		err = t.flush()
	}
	if err == nil && slices.ContainsFunc(all, func(f xstreamq.Finding) bool { return f.Level == "fail" }) {
		return errUnhealthy
	}
	return err
}

// printFindings breaks the lines of a terminal itself: what to do must be read to its end.
func printFindings(a *app, all []xstreamq.Finding) error {
	name := 0
	for _, f := range all {
		name = max(name, runewidth.StringWidth(f.Check))
	}
	level := runewidth.StringWidth("unknown")
	indent := strings.Repeat(" ", level+gap+name+gap)
	var b strings.Builder
	for _, f := range all {
		mark := runewidth.FillRight(f.Level, level)
		if a.color() && f.Level != "ok" {
			mark = "\x1b[1m" + mark + "\x1b[0m"
		}
		lines := wrap(escape(f.Detail), a.width-len(indent))
		if f.Fix != "" {
			lines = append(lines, wrap("Try: "+escape(f.Fix), a.width-len(indent))...)
		}
		fmt.Fprintf(&b, "%s  %s  %s\n", mark, runewidth.FillRight(f.Check, name), lines[0])
		for _, l := range lines[1:] {
			b.WriteString(indent + l + "\n")
		}
	}
	_, err := a.out.Write([]byte(b.String()))
	return err
}

// wrap breaks text at blanks into lines of at most width; where that is too narrow for words it does not.
func wrap(text string, width int) []string {
	if width < 30 {
		return []string{text}
	}
	lines := []string{""}
	for word := range strings.FieldsSeq(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case runewidth.StringWidth(*last)+1+runewidth.StringWidth(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
