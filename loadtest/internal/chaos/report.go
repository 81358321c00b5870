package chaos

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
)

// Report is what a trial found.
type Report struct {
	Profile  string
	Seed     uint64
	Dedupe   bool
	Faults   map[Kind]int
	Outages  []Outage
	Verdict  *ledger.Verdict
	Depth    xstreamq.Depth // at the end
	Remains  Remains
	Stock    []Remains // what lay on the server from time to time, where the profile asks for it
	Growth   Growth    // of the worker that was spared, and of the server, likewise
	Sampled  bool
	Trouble  []string // workers that did not behave as processes
	Workers  int      // processes in all
	LogLines int
	// Of kills while the server answered: messages under the killed workers' names, and of those the ones that had been done
	// and ran again.
	Kills int
	Held  int64
	Again int

	Newcomers     int     // runs while the memory was full, by workers that started meanwhile
	CPU           float64 // the most that a worker used in an outage, as a share of a core
	Length, Drain time.Duration
	Latency       ledger.Times // publish to the first handler's start, of all published during the chaos
	Recovery      ledger.Times // from a kill to the next run of what the killed worker ran, of first losses
	RecoveryLater ledger.Times // likewise, of those that had lost a lease before
	Resume        ledger.Times // from the server's return to the next handler's start
	Broken        []string     // bounds that were broken; empty = the trial is passed
}

// measure takes the times from the ledger.
func (r *Report) measure(b *ledger.Book, born map[string]int64, deaths []Death, chaos ledger.Span) {
	r.Latency = b.Latency(chaos)
	var first, later []time.Duration
	for _, d := range deaths {
		if !r.during(d.At, d.At) && d.Held >= 0 {
			r.Kills++
			r.Held += d.Held
			r.Again += b.Again(d.Worker)
		}
		for _, o := range b.Orphans(d.Worker, d.At) {
			if r.during(d.At, d.At+int64(o.Took)) {
				continue // the server's absence counts by itself
			}
			if o.Lost <= 1 {
				first = append(first, o.Took)
			} else {
				later = append(later, o.Took)
			}
		}
	}
	for _, o := range r.Outages {
		for name, runs := range b.Workers {
			if o.Kind != Full || born[name] < o.From {
				continue
			}
			for _, run := range runs {
				if run.Start < o.To {
					r.Newcomers++
				}
			}
		}
	}
	r.Recovery, r.RecoveryLater = ledger.Distribution(first), ledger.Distribution(later)
	var starts []int64
	for _, runs := range b.Workers {
		for _, run := range runs {
			starts = append(starts, run.Start)
		}
	}
	slices.Sort(starts)
	var resume []time.Duration
	for _, o := range r.Outages {
		i, _ := slices.BinarySearch(starts, o.To)
		if i == len(starts) || slices.ContainsFunc(r.Outages, func(x Outage) bool { return x != o && x.From <= starts[i] && x.To >= o.To }) {
			continue // another outage came before anything could start
		}
		resume = append(resume, time.Duration(starts[i]-o.To))
	}
	r.Resume = ledger.Distribution(resume)
}

// during says whether an outage, or the second before or behind it, meets that time: what a server had not synced when it was
// killed, it had not confirmed either.
func (r *Report) during(from, to int64) bool {
	return slices.ContainsFunc(r.Outages, func(o Outage) bool { return from <= o.To+int64(time.Second) && to >= o.From-int64(time.Second) })
}

// repeats is the share of what killed workers held that was done and ran again. While the server does not answer, all that a
// worker finishes waits for its ack, so kills in an outage would say nothing about the library.
func (r *Report) repeats() float64 {
	if r.Held == 0 {
		return 0
	}
	return float64(r.Again) / float64(r.Held)
}

// connsOfAWorker is what a worker's pool may hold when nothing happens: ten a processor, on the machines that run this.
const connsOfAWorker = 40

// linesAStart is what a process may log beside the bound for each minute: a kind is logged once a minute, and the first time
// at once.
const linesAStart = 12

// hold compares the report with the profile's bounds.
func (r *Report) hold(p *Profile) {
	b, v := p.Bounds, r.Verdict
	miss := func(format string, args ...any) { r.Broken = append(r.Broken, fmt.Sprintf(format, args...)) }
	for _, kind := range slices.Sorted(maps.Keys(v.Findings)) {
		if b.Beside && (kind == ledger.BesideKind || kind == ledger.NeedlessKind) {
			continue
		}
		miss("%s: %d", kind, v.Findings[kind].Count)
	}
	if int64(v.Confirmed) < p.Messages {
		miss("%d messages confirmed, want %d", v.Confirmed, p.Messages)
	}
	if v.Dead-v.Reburied != v.DeadPlanned {
		miss("%d dead letters, %d of them twice, planned are %d", v.Dead, v.Reburied, v.DeadPlanned)
	}
	if r.Depth.Dead != int64(v.Dead) {
		miss("the library counts %d dead letters, there are %d", r.Depth.Dead, v.Dead)
	}
	if d := r.Depth; d.Lag == nil {
		miss("the lag is unknown at the end")
	} else if *d.Lag+d.Pending+d.Retry+d.Retrying+d.Delayed != 0 {
		miss("left at the end: lag %d, pending %d, retry %d, retrying %d, delayed %d", *d.Lag, d.Pending, d.Retry, d.Retrying, d.Delayed)
	}
	if m := r.Remains; m.Consumers > p.Workers || m.Records > p.Workers {
		miss("%d consumers and %d lease records of %d workers are left", m.Consumers, m.Records, p.Workers)
	}
	if len(r.Remains.Unknown) > 0 {
		miss("keys that should not be there: %q", r.Remains.Unknown)
	}
	if most := connsOfAWorker*p.Workers + 4; r.Remains.Conns > most {
		miss("%d connections, at most %d", r.Remains.Conns, most)
	}
	if g := r.Growth; p.Sample && !r.Sampled {
		miss("too few samples of the worker that was spared, or of the server")
	} else if grew(g.Goroutines, g.GoroutinesEnd) || grew(g.Heap, g.HeapEnd) || grew(g.Conns, g.ConnsEnd) {
		miss("a worker or the connections grew: %+v", g)
	} else if !slices.Equal(g.Keys, g.KeysEnd) {
		miss("other keys than at a sixth: %q, then %q", g.Keys, g.KeysEnd)
	} else if p.Dedupe < p.For/6 && grew(g.Markers, g.MarkersEnd) { // those that live longer do add up until then
		miss("markers grew: %d, then %d", g.Markers, g.MarkersEnd)
	}
	for _, e := range p.Faults {
		if r.Faults[e.Kind] == 0 {
			miss("no %s happened", e.Kind)
		}
	}
	if b.Repeats >= 0 && r.repeats() > b.Repeats {
		miss("%d second runs of %d held messages, %.2f %%; at most %.2f %%", r.Again, r.Held, 100*r.repeats(), 100*b.Repeats)
	}
	if b.Once && v.Second > 0 {
		miss("%d second runs, want none", v.Second)
	}
	above := func(what string, got, most time.Duration) {
		if got > most {
			miss("%s took %v, at most %v", what, got.Round(time.Millisecond), most)
		}
	}
	above("recovery after a kill", r.Recovery.Max, b.Recovery)
	above("going on after an outage", r.Resume.Max, b.Resume)
	above("the drain", r.Drain, b.Drain)
	if r.Newcomers < b.Newcomers {
		miss("%d runs by workers that started while the memory was full, at least %d", r.Newcomers, b.Newcomers)
	}
	if r.CPU > b.CPU {
		miss("a worker used %.0f %% of a core in an outage, at most %.0f %%", 100*r.CPU, 100*b.CPU)
	}
	if minutes := float64(p.Workers) * (r.Length + r.Drain).Minutes(); float64(r.LogLines) > b.LogLines*minutes+float64(linesAStart*r.Workers) {
		miss("%d log lines in %.1f worker-minutes of %d processes", r.LogLines, minutes, r.Workers)
	}
	for _, text := range r.Trouble {
		miss("%s", text)
	}
}

// Print writes the table, then one line of JSON.
func (r *Report) Print(w io.Writer) error {
	v := r.Verdict
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	line("profile", "%s, seed %d, dedupe %v", r.Profile, r.Seed, r.Dedupe)
	for _, k := range slices.Sorted(maps.Keys(r.Faults)) {
		line("fault: "+string(k), "%d", r.Faults[k])
	}
	line("confirmed", "%d", v.Confirmed)
	line("uncertain", "%d, of which %d were stored", v.Uncertain, v.Stored)
	line("handler runs", "%d: %d ok, %d failed, %d cut, %d ended by a worker's end", v.Runs, v.Succeeded, v.Failed, v.Cut, v.Unended)
	line("lost", "%d (admitted %d)", v.Count(ledger.LostKind), v.Admitted)
	line("dead letters", "%d, planned %d, buried again %d", v.Dead, v.DeadPlanned, v.Reburied)
	line("duplicated", "%d messages, %d second runs; %d runs of an attempt that had ended before", v.Duplicated, v.Second, v.Repeated)
	line("held at kills", "%d, at %d kills while the server answered; %d of them ran a second time: %.3f %%", r.Held, r.Kills, r.Again, 100*r.repeats())
	for _, kind := range slices.Sorted(maps.Keys(v.Findings)) {
		line("found: "+kind, "%d", v.Findings[kind].Count)
	}
	times := func(name string, d ledger.Times) {
		line(name, "p50 %v, p99 %v, max %v (%d)", d.P50.Round(100*time.Microsecond), d.P99.Round(time.Millisecond), d.Max.Round(time.Millisecond), d.Count)
	}
	times("publish to start", r.Latency)
	times("recovery, first loss", r.Recovery)
	times("recovery, later loss", r.RecoveryLater)
	times("resumed after outage", r.Resume)
	line("cpu of a worker in outages", "%.1f %% of a core at most", 100*r.CPU)
	line("left at the end", "%d consumers, %d lease records, %d connections", r.Remains.Consumers, r.Remains.Records, r.Remains.Conns)
	if r.Sampled {
		g := r.Growth
		line("from a sixth on", "a worker's goroutines %d → %d, heap %d → %d KiB; connections %d → %d, keys %d → %d, markers %d → %d",
			g.Goroutines, g.GoroutinesEnd, g.Heap>>10, g.HeapEnd>>10, g.Conns, g.ConnsEnd, len(g.Keys), len(g.KeysEnd), g.Markers, g.MarkersEnd)
	}
	line("worker processes", "%d, %d log lines", r.Workers, r.LogLines)
	line("took", "%v, then %v until all was done", r.Length.Round(100*time.Millisecond), r.Drain.Round(100*time.Millisecond))
	for _, text := range r.Broken {
		line("BROKEN", "%s", text)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(v.Findings)) {
		for _, e := range v.Findings[kind].Examples {
			fmt.Fprintf(w, "  %s: %s\n", kind, e)
		}
	}
	return json.NewEncoder(w).Encode(r.summary())
}

// summary is the line of JSON. Times are in milliseconds.
func (r *Report) summary() map[string]any {
	v := r.Verdict
	of := func(d ledger.Times) map[string]any {
		return map[string]any{"n": d.Count, "p50": d.P50.Milliseconds(), "p99": d.P99.Milliseconds(), "max": d.Max.Milliseconds()}
	}
	return map[string]any{
		"profile": r.Profile, "seed": r.Seed, "dedupe": r.Dedupe, "ok": len(r.Broken) == 0, "broken": append([]string{}, r.Broken...),
		"faults": r.Faults, "confirmed": v.Confirmed, "uncertain": v.Uncertain, "stored": v.Stored,
		"runs": v.Runs, "succeeded": v.Succeeded, "failed": v.Failed, "cut": v.Cut, "unended": v.Unended,
		"lost": v.Count(ledger.LostKind), "admitted": v.Admitted, "dead": v.Dead, "dead_planned": v.DeadPlanned,
		"duplicated": v.Duplicated, "second_runs": v.Second, "repeated": v.Repeated, "kills_answered": r.Kills, "held": r.Held, "again": r.Again, "repeats": r.repeats(),
		"findings": v.Findings, "latency_ms": of(r.Latency), "recovery_ms": of(r.Recovery), "recovery_later_ms": of(r.RecoveryLater),
		"resume_ms": of(r.Resume), "outage_cpu": r.CPU, "workers": r.Workers, "log_lines": r.LogLines, "depth": r.Depth, "remains": r.Remains, "growth": r.Growth,
		"length_ms": r.Length.Milliseconds(), "drain_ms": r.Drain.Milliseconds(),
	}
}
