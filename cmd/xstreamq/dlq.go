package main

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xstreamq/xstreamq"
)

func newDLQ(a *app) *cobra.Command {
	return parent(&cobra.Command{
		Use:   "dlq",
		Short: "Look at dead letters, redrive or purge them",
		Example: `  xstreamq dlq ls orders billing --error timeout
  xstreamq dlq redrive orders billing --all --yes`,
	}, newDLQLs(a), newDLQShow(a), newDLQRedrive(a), newDLQPurge(a))
}

// dlqFilter is what ls, redrive and purge choose dead letters by.
type dlqFilter struct {
	all           bool
	reason        string
	error, body   string
	headers       []string
	before, after string
	limit         int
}

// reasons are why a message may be dead, as --reason takes them.
var reasons = []string{"retries", "lost", "rejected", "no-body", "overflow", "cut", "expired", "malformed", "too-wide"}

func (f *dlqFilter) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.BoolVar(&f.all, "all", false, "all of them")
	fs.StringVar(&f.reason, "reason", "", "that died of `REASON`: "+strings.Join(reasons, ", "))
	fs.StringVar(&f.error, "error", "", "whose error holds `TEXT`")
	fs.StringVar(&f.body, "body", "", "whose body holds `TEXT`")
	fs.StringArrayVar(&f.headers, "header", nil, "with this header, `key=value`; repeat for more")
	fs.StringVar(&f.before, "before", "", "that died before `TIME` (RFC 3339, or a duration: that long ago)")
	fs.StringVar(&f.after, "after", "", "that died after `TIME`, given likewise")
	completeWords(cmd, "reason", reasons...)
	fs.IntVar(&f.limit, "limit", 0, "at most `N` of them")
}

var entryID = regexp.MustCompile(`^[0-9]{1,20}-[0-9]{1,20}$`)

// build checks the flags and the ids. chosen tells whether anything at all narrows the choice, or --all widens it.
func (f *dlqFilter) build(ids []string, now time.Time) (filter xstreamq.Filter, chosen bool, err error) {
	for _, id := range ids {
		if !entryID.MatchString(id) {
			return filter, false, &usageError{
				err:  fmt.Errorf("%q is no entry id", id),
				hint: "the entry id of a dead letter, such as 1760000000000-0: the first column of `xstreamq dlq ls`",
			}
		}
	}
	if f.limit < 0 {
		return filter, false, usagef("--limit is %d: it must not be below 0", f.limit)
	}
	if f.all && len(ids) > 0 {
		return filter, false, usagef("give ids or --all, not both")
	}
	filter = xstreamq.Filter{
		All: f.all, Reason: xstreamq.Reason(f.reason), ErrorContains: f.error, BodyContains: f.body,
	}
	if len(ids) > 0 { // an empty list would match nothing
		filter.EntryIDs = ids
	}
	if len(f.headers) > 0 {
		if filter.Header, err = parseHeaders(f.headers); err != nil {
			return filter, false, err
		}
	}
	if filter.Before, err = parseTime("--before", f.before, now); err != nil {
		return filter, false, err
	}
	if filter.After, err = parseTime("--after", f.after, now); err != nil {
		return filter, false, err
	}
	return filter, f.all || len(ids) > 0 || f.narrowed(), nil
}

// narrowed says that a flag leaves some out; --limit is none of them.
func (f *dlqFilter) narrowed() bool {
	return f.reason != "" || f.error != "" || f.body != "" || len(f.headers) > 0 || f.before != "" || f.after != ""
}
