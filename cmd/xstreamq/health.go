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
)

type healthOptions struct {
	a         *app
	format    string
	maxLag    int64 // < 0: no threshold
	maxDead   int64
	maxOldest time.Duration
}

type checkJSON struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

type healthJSON struct {
	Healthy bool        `json:"healthy"`
	Checks  []checkJSON `json:"checks"`
}

// vitals is what a look at the server and its groups gave.
type vitals struct {
	healthJSON
	groups []groupVitals
	err    error // the server could not be asked
	unsure bool  // a threshold could not be judged
}

type groupVitals struct {
	xstreamq.Depth
	workers int
}

func newHealth(a *app) *cobra.Command {
	o := &healthOptions{a: a}
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Is the server well, and are its groups worked on",
		Long: `Look at the server and at every group, and exit with 1 when something is wrong:

  server     it answers
  writable   it would take a message
  groups     every group could be counted
  consumers  each group that has something to do, and is not paused, has a live consumer
  lag, dead, oldest   no group is over --max-lag, --max-dead, --max-oldest; not asked without the flag

A server that cannot be reached is exit code 4 as everywhere. It changes nothing. For the health of one process, its
loops and its leases, the library has Client.Health and handlers for probes.

Formats: text; json; prometheus (gauges in the text format, for a node exporter's textfile collector); nagios (one status
line with performance data, exit codes 0 ok, 2 critical, 3 unknown).`,
		Example: `  xstreamq health --max-dead 0 --max-oldest 5m
  xstreamq health --format nagios --max-lag 10000 --max-dead 100
  xstreamq health --format prometheus > xstreamq.prom`,
		Args:              args(0, 0),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := cmd.Flags().Changed
			return runHealth(cmd.Context(), o, given)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "text", "`FORMAT`: text, json, prometheus, nagios")
	f.Int64Var(&o.maxLag, "max-lag", 0, "most unread messages of a group, `N` (default: any)")
	f.Int64Var(&o.maxDead, "max-dead", 0, "most dead letters of a group, `N` (default: any)")
	f.DurationVar(&o.maxOldest, "max-oldest", 0, "highest age of a group's oldest message that is not done, such as 5m (default: any)")
	completeWords(cmd, "format", "text", "json", "prometheus", "nagios")
	return withJSON(cmd, jsonObject, "healthy", "checks")
}

func (o *healthOptions) check(given func(string) bool) error {
	if !slices.Contains([]string{"text", "json", "prometheus", "nagios"}, o.format) {
		return &usageError{err: fmt.Errorf("--format %q is none of text, json, prometheus, nagios", o.format), hint: "--format json"}
	}
	if o.a.json {
		if given("format") && o.format != "json" {
			return usagef("give --json or --format %s, not both", o.format)
		}
		o.format = "json"
	}
	if o.maxLag < 0 || o.maxDead < 0 || o.maxOldest < 0 {
		return usagef("--max-lag, --max-dead and --max-oldest must not be below 0")
	}
	if !given("max-lag") {
		o.maxLag = -1
	}
	if !given("max-dead") {
		o.maxDead = -1
	}
	if !given("max-oldest") {
		o.maxOldest = -1
	}
	return nil
}

func runHealth(ctx context.Context, o *healthOptions, given func(string) bool) error {
	if err := o.check(given); err != nil {
		return o.wrong(err)
	}
	v, err := o.examine(ctx)
	if err != nil {
		return o.wrong(err)
	}
	switch o.format {
	case "json":
		err = o.a.printJSON(v.healthJSON)
	case "prometheus":
		err = printPrometheus(o.a, v)
	case "nagios":
		return printNagios(o, v)
	default:
		if v.err == nil { // else the error says it all
			err = printHealth(o.a, v)
		}
	}
	switch {
	case err != nil:
		return err
	case v.err != nil:
		return v.err
	case !v.Healthy:
		return errUnhealthy
	}
	return nil
}

// errUnhealthy is exit code 1 with nothing more to say: the checks said it.
var errUnhealthy = &silent{code: exitFailed}

// silent ends a command with a code and no error line.
type silent struct{ code int }

func (s *silent) Error() string { return fmt.Sprintf("exit code %d", s.code) }

// wrong is an error before anything could be judged: unknown, to Nagios.
func (o *healthOptions) wrong(err error) error {
	if o.format != "nagios" {
		return err
	}
	return o.nagiosLine(nagiosUnknown, "UNKNOWN", o.a.redact(err.Error()), "")
}

// examine asks. The error is one of ours; that of the server is in the vitals.
func (o *healthOptions) examine(ctx context.Context) (v vitals, err error) {
	c, err := o.a.open()
	if err != nil {
		return v, err
	}
	defer closeClient(c, &err)
	call, cancel := o.a.call(ctx)
	defer cancel()
	depths, counted := c.Admin().Depths(call)
	if counted != nil && exitCode(counted) == exitUnreachable && len(depths) == 0 {
		v.err = counted
		v.add("server", counted.Error())
		return v, nil
	}
	for _, check := range o.server(ctx, c, depths) {
		v.add(check.Name, check.Detail)
	}
	if counted != nil {
		v.add("groups", counted.Error())
	} else {
		v.add("groups", "")
	}
	for _, d := range depths {
		if d.Group != "" {
			v.groups = append(v.groups, groupVitals{d, 0})
		}
	}
	v.add("consumers", o.unattended(ctx, c, v.groups))
	o.thresholds(&v)
	return v, nil
}

// add adds a check; without trouble it is fine.
func (v *vitals) add(name, trouble string) {
	v.Checks = append(v.Checks, checkJSON{name, trouble == "", trouble})
	v.Healthy = !slices.ContainsFunc(v.Checks, func(c checkJSON) bool { return !c.OK })
}

// server is what the client itself says: reachable, and writable for the streams there are. Where there are none, it is
// asked of one that nobody has; nothing is stored.
func (o *healthOptions) server(ctx context.Context, c *xstreamq.Client, depths []xstreamq.Depth) (checks []xstreamq.Check) {
	if len(depths) == 0 {
		xstreamq.NewQueue[[]byte](c, "health")
	}
	for _, d := range depths {
		xstreamq.NewQueue[[]byte](c, d.Stream)
	}
	ctx, cancel := o.a.call(ctx)
	defer cancel()
	for _, check := range c.Health(ctx).Checks {
		if check.Name == "server" || check.Name == "writable" {
			if check.OK {
				check.Detail = ""
			}
			checks = append(checks, check)
		}
	}
	return checks
}

// unattended names the groups that have something to do and nobody to do it.
func (o *healthOptions) unattended(ctx context.Context, c *xstreamq.Client, groups []groupVitals) string {
	var bad []string
	for i := range groups {
		g := &groups[i]
		n, err := o.workers(ctx, c, g.GroupRef)
		if err != nil {
			bad = append(bad, name(g.GroupRef)+": "+err.Error())
			continue
		}
		g.workers = n
		waits := g.Retry > 0 || g.Retrying > 0 || g.Lag != nil && *g.Lag > 0
		if n == 0 && waits && !g.Paused {
			bad = append(bad, name(g.GroupRef)+" has messages and no live consumer")
		}
	}
	return few(bad)
}

// workers counts the consumers that are alive: ours by their heartbeats, others when Redis saw them within a minute.
func (o *healthOptions) workers(ctx context.Context, c *xstreamq.Client, g xstreamq.GroupRef) (n int, err error) {
	ctx, cancel := o.a.call(ctx)
	defer cancel()
	all, err := c.Admin().Group(g.Stream, g.Group).Consumers(ctx)
	if errors.Is(err, xstreamq.ErrInvalidName) || errors.Is(err, xstreamq.ErrNotFound) {
		return 0, nil // of another library, or removed meanwhile
	}
	for _, w := range all {
		if w.Heartbeat >= 0 && w.Heartbeat <= w.Visibility || w.Heartbeat < 0 && w.Idle >= 0 && w.Idle < time.Minute {
			n++
		}
	}
	return n, err
}

func (o *healthOptions) thresholds(v *vitals) {
	var lag, dead, oldest, blind []string
	for _, g := range v.groups {
		switch {
		case o.maxLag >= 0 && g.Lag == nil:
			blind = append(blind, name(g.GroupRef))
		case o.maxLag >= 0 && *g.Lag > o.maxLag:
			lag = append(lag, fmt.Sprintf("%s has %d unread", name(g.GroupRef), *g.Lag))
		}
		if o.maxDead >= 0 && g.Dead > o.maxDead {
			dead = append(dead, fmt.Sprintf("%s has %d dead", name(g.GroupRef), g.Dead))
		}
		if o.maxOldest >= 0 && g.Oldest > o.maxOldest {
			oldest = append(oldest, fmt.Sprintf("the oldest of %s is %s old", name(g.GroupRef), ago(g.Oldest)))
		}
	}
	if o.maxLag >= 0 {
		if len(blind) > 0 {
			v.unsure = len(lag) == 0
			lag = append(lag, "the server cannot tell it of "+strings.Join(blind, ", "))
		}
		v.add("lag", few(lag))
	}
	if o.maxDead >= 0 {
		v.add("dead", few(dead))
	}
	if o.maxOldest >= 0 {
		v.add("oldest", few(oldest))
	}
}

func name(g xstreamq.GroupRef) string { return g.Stream + "/" + g.Group }

// few keeps a long list of troubles readable.
func few(list []string) string {
	const most = 5
	if len(list) > most {
		list = append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
	}
	return strings.Join(list, "; ")
}
