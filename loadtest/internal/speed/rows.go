package speed

import (
	"fmt"
	"strconv"
	"strings"
)

// Row is one line of the table.
type Row struct {
	What   string  `json:"what"`
	Than   string  `json:"than,omitempty"` // what it is compared with; "" = the figure itself
	Ours   float64 `json:"ours"`           // medians
	Theirs float64 `json:"theirs,omitempty"`
	Value  float64 `json:"value"` // what the target bounds: the median of each round's ratio, or ours
	Target string  `json:"target"`
	Unit   string  `json:"unit"`
	Pass   bool    `json:"pass"`
}

type bound struct {
	what, ours, than, theirs, unit string
	least, most                    float64 // one of the two
	guard                          float64 // instead, in a guard; 0 = not looked at there
}

var bounds = []bound{
	{"Publish, 64 callers, confirmed", "publish-64", "redis-benchmark, unpipelined", "redis-benchmark", "messages/s", 2.5, 0, 1.2},
	{"Publish, 64 callers, confirmed", "publish-64", "asynq", "asynq publish", "messages/s", 3, 0, 0},
	{"PublishBatch of 1,000", "publish-batch", "redis-benchmark -P 64", "redis-benchmark -P 64", "messages/s", 0.6, 0, 0.2},
	{"drain, 64 no-op handlers", "drain", "a raw read-256/ack-256 loop", "raw drain", "messages/s", 0.75, 0, 0.25},
	{"drain, 64 no-op handlers", "drain", "asynq", "asynq drain", "messages/s", 25, 0, 0},
	{"drain, 64 no-op handlers", "drain", "JetStream", "jetstream drain", "messages/s", 1.5, 0, 0},
	{"drain with dedupe", "drain-dedupe", "without", "drain", "messages/s", 0.5, 0, 0.2},
	{"20,000/s, publish → handler, p50", "latency-p50", "", "", "ms", 0, 0.8, 0},
	{"20,000/s, publish → handler, p99", "latency-p99", "", "", "ms", 0, 5, 0},
	{"20,000/s, publish → handler, p99", "latency-p99", "JetStream", "jetstream p99", "ms", 0, 1.1, 0},
	{"20,000/s, left when the last was published", "latency-backlog", "", "", "messages", 0, 200, 0},
	{"lone publish on an idle queue → handler, p50", "latency-idle-p50", "", "", "ms", 0, 0.5, 0},
	{"idle subscription", "idle-commands", "", "", "commands/s", 0, 2, 0},
	{"publish p99 beside 1,000,000 parked retries", "parked p99", "a control", "control p99", "ms", 0, 1.5, 0},
	{"publish p99 beside 100,000 pending", "pending p99", "a control", "control p99", "ms", 0, 1.5, 0},
	{"commands over 5 ms, 1,000,000 parked retries", "parked slow", "", "control slow", "commands", 0, 0, 0},
	{"commands over 5 ms, 100,000 pending", "pending slow", "", "control slow", "commands", 0, 0, 0},
	{"allocations of a publish and its drain", "allocs", "", "", "allocations", 0, 12, 60},
}

// Table judges what was measured. In a guard the bounds are wide and few.
func Table(s Samples, guard bool) []Row {
	for i, v := range s["publish-64-allocs"] {
		s.add("allocs", v+s["drain-allocs"][i])
	}
	var rows []Row
	for _, b := range bounds {
		if guard {
			if b.guard == 0 {
				continue
			}
			if b.least > 0 {
				b.least = b.guard
			} else {
				b.most = b.guard
			}
		}
		rows = append(rows, b.row(s))
	}
	return rows
}

func (b bound) row(s Samples) Row {
	ours := s[b.ours]
	r := Row{What: b.what, Than: b.than, Ours: Median(ours), Unit: b.unit}
	r.Value = r.Ours
	if b.theirs != "" {
		r.Theirs = Median(s[b.theirs])
	}
	if b.than != "" {
		ratios := make([]float64, len(ours))
		for i, v := range ours {
			ratios[i] = v / s[b.theirs][i]
		}
		r.Value = Median(ratios)
	}
	times := ""
	if b.than != "" {
		times = " ×"
	}
	switch {
	case b.least > 0:
		r.Target, r.Pass = "≥ "+number(b.least)+times, r.Value >= b.least
	case b.most > 0:
		r.Target, r.Pass = "≤ "+number(b.most)+times, r.Value <= b.most
	default: // none beyond the control's
		r.Target, r.Pass = "≤ the control's "+number(r.Theirs), r.Value <= r.Theirs
	}
	return r
}

func number(v float64) string {
	switch {
	case v >= 1000:
		return strconv.FormatFloat(v/1000, 'f', 0, 64) + "k"
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Markdown is the table for the page.
func Markdown(rows []Row) string {
	var b strings.Builder
	b.WriteString("| what | ours | beside | target | reached | |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		beside, reached, verdict := "", number(r.Value), "pass"
		if r.Than != "" {
			beside, reached = number(r.Theirs)+", "+r.Than, reached+" ×"
		}
		if !r.Pass {
			verdict = "**fail**"
		}
		fmt.Fprintf(&b, "| %s | %s %s | %s | %s | %s | %s |\n", r.What, number(r.Ours), r.Unit, beside, r.Target, reached, verdict)
	}
	return b.String()
}

// Peers is the table of the systems, side by side.
func Peers(s Samples) string {
	var b strings.Builder
	b.WriteString("| | publish, 64 callers | drain, 64 handlers | p50 / p99 at 20,000/s |\n|---|---|---|---|\n")
	row := func(name, publish, drain, latency string) {
		ms := "–"
		if len(s[latency+"p50"]) > 0 {
			ms = number(Median(s[latency+"p50"])) + " / " + number(Median(s[latency+"p99"])) + " ms"
		}
		fmt.Fprintf(&b, "| %s | %s/s | %s/s | %s |\n", name, number(Median(s[publish])), number(Median(s[drain])), ms)
	}
	row("xstreamq", "publish-64", "drain", "latency-")
	row("go-redis: an XADD a call, read-256/ack-256", "raw publish", "raw drain", "raw ")
	row("asynq", "asynq publish", "asynq drain", "asynq ")
	row("NATS JetStream", "jetstream publish", "jetstream drain", "jetstream ")
	return b.String()
}
