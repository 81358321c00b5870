package main

import (
	"fmt"
	"strings"

	"github.com/xstreamq/xstreamq"
)

// Exit codes that a Nagios plugin has.
const (
	nagiosOK       = 0
	nagiosCritical = 2
	nagiosUnknown  = 3
)

func printHealth(a *app, v vitals) error {
	t := a.table("CHECK", "OK", "DETAIL")
	for _, c := range v.Checks {
		if err := t.row(c.Name, yesNo(c.OK), c.Detail); err != nil {
			return err
		}
	}
	return t.flush()
}

// printNagios prints the status line and ends with the plugin's code.
func printNagios(o *healthOptions, v vitals) error {
	var bad []string
	for _, c := range v.Checks {
		if !c.OK {
			bad = append(bad, c.Name+": "+c.Detail)
		}
	}
	code, word := nagiosOK, "OK"
	switch {
	case len(bad) == 1 && v.unsure:
		code, word = nagiosUnknown, "UNKNOWN"
	case len(bad) > 0:
		code, word = nagiosCritical, "CRITICAL"
	}
	text := strings.Join(bad, "; ")
	if text == "" {
		text = fmt.Sprintf("%d groups", len(v.groups))
	}
	return o.nagiosLine(code, word, o.a.redact(text), o.perfdata(v))
}

func (o *healthOptions) nagiosLine(code int, word, text, perf string) error {
	text = strings.NewReplacer("|", "/", "\n", " ").Replace(text) // | begins the performance data
	line := "XSTREAMQ " + word + " - " + text
	if perf != "" {
		line += " | " + perf
	}
	if _, err := fmt.Fprintln(o.a.out, escape(line)); err != nil {
		return err
	}
	if code == nagiosOK {
		return nil
	}
	return &silent{code: code}
}

// perfdata is the highest of all groups, beside the thresholds.
func (o *healthOptions) perfdata(v vitals) string {
	if v.err != nil {
		return ""
	}
	var lag, dead int64
	oldest := 0.0
	for _, g := range v.groups {
		if g.Lag != nil {
			lag = max(lag, *g.Lag)
		}
		dead, oldest = max(dead, g.Dead), max(oldest, g.Oldest.Seconds())
	}
	limit := func(given bool, v any) string {
		if !given {
			return ""
		}
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("groups=%d;;;0 lag=%d;;%s;0 dead=%d;;%s;0 oldest=%.3fs;;%s;0", len(v.groups),
		lag, limit(o.maxLag >= 0, o.maxLag), dead, limit(o.maxDead >= 0, o.maxDead), oldest, limit(o.maxOldest >= 0, o.maxOldest.Seconds()))
}

// gauge is one metric of each group.
type gauge struct {
	name, help string
	value      func(groupVitals) (v float64, known bool)
}

var gauges = []gauge{
	{"length", "Entries of the stream, history included.", func(g groupVitals) (float64, bool) { return float64(g.Length), true }},
	{"lag", "Messages not yet read.", func(g groupVitals) (float64, bool) {
		if g.Lag == nil {
			return 0, false
		}
		return float64(*g.Lag), true
	}},
	{"pending", "Messages in flight.", func(g groupVitals) (float64, bool) { return float64(g.Pending), true }},
	{"retry", "Messages due for another attempt, not yet read.", func(g groupVitals) (float64, bool) { return float64(g.Retry), true }},
	{"retrying", "Messages that wait out their backoff.", func(g groupVitals) (float64, bool) { return float64(g.Retrying), true }},
	{"delayed", "Messages of the stream published for later.", func(g groupVitals) (float64, bool) { return float64(g.Delayed), true }},
	{"dead", "Dead letters.", func(g groupVitals) (float64, bool) { return float64(g.Dead), true }},
	{"oldest_seconds", "Age of the oldest message that is not done.", func(g groupVitals) (float64, bool) { return g.Oldest.Seconds(), true }},
	{"workers", "Live consumers.", func(g groupVitals) (float64, bool) { return float64(g.workers), true }},
	{"paused", "1 while the group is paused.", func(g groupVitals) (float64, bool) { return float64(bit(g.Paused)), true }},
}

// printPrometheus prints the text exposition format.
func printPrometheus(a *app, v vitals) error {
	var b strings.Builder
	head := func(name, help string) {
		fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name)
	}
	head("xstreamq_up", "1 when the server answered.")
	fmt.Fprintf(&b, "xstreamq_up %d\n", bit(v.err == nil))
	head("xstreamq_healthy", "1 when every check is fine.")
	fmt.Fprintf(&b, "xstreamq_healthy %d\n", bit(v.Healthy))
	head("xstreamq_check", "1 when the check is fine.")
	for _, c := range v.Checks {
		fmt.Fprintf(&b, "xstreamq_check{check=%s} %d\n", label(c.Name), bit(c.OK))
	}
	for _, m := range gauges {
		if len(v.groups) == 0 {
			break
		}
		head("xstreamq_group_"+m.name, m.help)
		for _, g := range v.groups {
			if value, known := m.value(g); known {
				fmt.Fprintf(&b, "xstreamq_group_%s{%s} %v\n", m.name, labels(g.GroupRef), value)
			}
		}
	}
	_, err := a.out.Write([]byte(b.String()))
	return err
}

func labels(g xstreamq.GroupRef) string {
	return "stream=" + label(g.Stream) + ",group=" + label(g.Group)
}

// label is a value as the format wants it; what could drive a terminal is written out first.
func label(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(escape(s)) + `"`
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
