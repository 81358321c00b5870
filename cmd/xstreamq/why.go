package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

type whyJSON struct {
	State    string          `json:"state"`
	Detail   string          `json:"detail"`
	Ahead    *int64          `json:"ahead"`
	Consumer *string         `json:"consumer"`
	DueAt    *string         `json:"due_at"`
	Message  json.RawMessage `json:"message"`
}

func newWhy(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "why STREAM GROUP ID",
		Short: "Where a message is, and what it waits for",
		Long: `Say where a message is for a group, and what it waits for: behind how many, with whom and until when, parked until when
and after which error, dead since when and of what, done, or unknown; and whether the group is paused, or has nobody
working on it. By the id that its publish printed, or by the entry id it has now.

With --json {"state","detail","ahead","consumer","due_at","message"}, state one of waiting, delayed, in-flight, retrying,
dead, done, unknown; what there is none of is null.`,
		Example: `  xstreamq why orders billing 1760000000000-0
  xstreamq why orders billing 1760000000000-0 --json | jq -r .state`,
		Args:              args(3, 3),
		ValidArgsFunction: a.completeNames(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runWhy(cmd.Context(), a, args[0], args[1], args[2])
		},
	}, jsonObject, "state", "detail", "ahead", "consumer", "due_at", "message")
}

func runWhy(ctx context.Context, a *app, stream, group, id string) error {
	var w xstreamq.Whereabouts
	err := a.admin(ctx, func(ctx context.Context, adm *xstreamq.Admin) (err error) {
		w, err = adm.Group(stream, group).Why(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	if a.json {
		return printWhyJSON(a, w)
	}
	d := &details{a: a}
	if a.outTTY { // the answer, then what it is about
		answer := strings.Join(wrap(escape(w.Detail), a.width), "\n")
		if _, err := fmt.Fprintf(a.out, "%s\n\n", answer); err != nil {
			return err
		}
	}
	d.add("state", w.State)
	if !a.outTTY {
		d.add("detail", w.Detail)
	}
	if w.Ahead != nil {
		d.add("ahead", count(*w.Ahead))
	}
	d.add("consumer", w.Consumer)
	if w.Record == nil || !w.Due.Equal(w.Record.DueAt) {
		d.add("until", d.when(w.Due))
	}
	if w.Record != nil {
		d.record(*w.Record)
		d.body(w.Record.Body)
	}
	return d.print()
}

func printWhyJSON(a *app, w xstreamq.Whereabouts) error {
	out := whyJSON{State: w.State, Detail: w.Detail, Ahead: w.Ahead, DueAt: stampPtr(w.Due)}
	if w.Consumer != "" {
		out.Consumer = &w.Consumer
	}
	message := []byte("null")
	if w.Record != nil {
		var err error
		if message, err = recordJSON(*w.Record); err != nil {
			return err
		}
	}
	// The message is put in by hand, as bodies are: the encoder would rewrite its white space.
	b, err := encode(out)
	if err != nil {
		return err
	}
	b = append(b[:len(b)-len(`null}`)], message...)
	return a.writeJSON(append(b, "}\n"...))
}
