package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/plan"
)

// Letter is a dead letter as it lies on the server.
type Letter struct {
	EntryID, ID  string
	RC           int // failed attempts
	Lost, Losses int
	Reason       string
	Fields       []string // the producer's own, in their order
}

// Span is a stretch of time, in Unix nanoseconds.
type Span struct{ From, To int64 }

func (s Span) holds(t int64) bool        { return t >= s.From && t <= s.To }
func (s Span) meets(from, to int64) bool { return from <= s.To && to >= s.From }

// Trial is what the judge knows beside the ledger.
type Trial struct {
	Plan    plan.Plan
	Letters []Letter
	// Asleep are the times in which a worker was stopped: what it held may be given to others beside it.
	Asleep map[string][]Span
	// Admit are times in which the server itself may have lost what it confirmed.
	Admit []Span
	// Unsure are times in which the server may have lost what it had not confirmed, though a worker saw it: a failover.
	Unsure []Span
	// Reruns says that settlements may be undone: acks that the server lost, a group made again. Then a message may also be
	// buried twice.
	Reruns bool
}

// Kinds of findings. None of them may happen, but for what a trial admits.
const (
	LostKind     = "lost"              // confirmed, and neither done nor, as planned, dead
	UnknownKind  = "unknown message"   // handled, and never sent
	WrongIDKind  = "wrong id"          // handled under another id than the confirmed one, or under two
	BadKind      = "altered message"   // its body or headers are not what was sent
	SpentKind    = "attempt spent"     // an attempt was counted that no handler failed
	BeyondKind   = "beyond the plan"   // an attempt after the one that succeeds, or after the last
	BesideKind   = "ran beside"        // two runs at one time, both workers alive and awake
	UndoneKind   = "undone"            // it ran again after its settlement was confirmed
	NeedlessKind = "ran needlessly"    // it ran again though the worker that was through with it lived and was awake
	DeadKind     = "dead unplanned"    // a dead letter that should be none
	DeadLossKind = "dead by losses"    // likewise, only because its workers died
	TwiceKind    = "dead twice"        // two dead letters of one message
	CounterKind  = "dead letter wrong" // its counters, reason or fields
)

const examplesKept = 8

// Finding is how often something happened, and the first cases.
type Finding struct {
	Count    int      `json:"count"`
	Examples []string `json:"examples"`
}

// Verdict is the judge's.
type Verdict struct {
	Confirmed, Uncertain, Stored int // Uncertain were sent and never confirmed; Stored of them turned out to be there
	Runs, Succeeded, Failed, Cut int
	Unended                      int // runs that their worker's end cut off
	Duplicated, Second           int // messages with more than one successful run; such runs beyond the first
	Repeated                     int // runs of an attempt that had come to its end before, successful or not
	DeadPlanned, Dead            int
	Reburied                     int // dead letters of messages that had one, where that is admitted
	Admitted                     int // lost in a time in which the server may lose
	Findings                     map[string]*Finding
}

// Count of a kind of finding.
func (v *Verdict) Count(kind string) int {
	if f := v.Findings[kind]; f != nil {
		return f.Count
	}
	return 0
}

func (v *Verdict) find(kind, format string, args ...any) {
	f := v.Findings[kind]
	if f == nil {
		f = &Finding{}
		v.Findings[kind] = f
	}
	f.Count++
	if len(f.Examples) < examplesKept {
		f.Examples = append(f.Examples, fmt.Sprintf(format, args...))
	}
}

// Judge holds the book against the plan.
func Judge(b *Book, t Trial) *Verdict {
	v := &Verdict{Findings: map[string]*Finding{}}
	letters := map[string][]Letter{}
	for _, l := range t.Letters {
		letters[l.ID] = append(letters[l.ID], l)
	}
	v.Dead = len(t.Letters)
	for _, seq := range slices.Sorted(maps.Keys(b.Messages)) {
		m := b.Messages[seq]
		slices.SortFunc(m.Runs, func(x, y *Run) int { return cmp.Compare(x.Start, y.Start) })
		v.message(m, t, letters)
	}
	for _, id := range slices.Sorted(maps.Keys(letters)) { // those of known messages were taken out
		l := letters[id][0]
		v.find(DeadKind, "entry %s, id %s, reason %s: no such message was handled", l.EntryID, id, l.Reason)
	}
	return v
}

func (v *Verdict) message(m *Message, t Trial, letters map[string][]Letter) {
	id := m.ID
	switch {
	case m.Confirmed > 0:
		v.Confirmed++
	case m.Sent > 0:
		v.Uncertain++
		if len(m.Runs) > 0 {
			v.Stored++
			id = m.Runs[0].ID
		}
	default:
		v.find(UnknownKind, "message %d, id %s", m.Seq, m.Runs[0].ID)
		return
	}
	v.runs(m, id, t)
	mine := letters[id]
	delete(letters, id)
	planned := t.Plan.Dead(m.Seq)
	if id == "" { // never confirmed, never seen
		return
	}
	if planned {
		v.DeadPlanned++
	}
	done := slices.ContainsFunc(m.Runs, func(r *Run) bool { return r.Outcome == OK })
	if planned && len(mine) == 0 || !planned && !done && len(mine) == 0 {
		admit := t.Admit
		if m.Confirmed == 0 {
			admit = slices.Concat(admit, t.Unsure)
		}
		if slices.ContainsFunc(admit, func(s Span) bool { return s.holds(max(m.Sent, m.Confirmed)) }) {
			v.Admitted++
			if planned {
				v.DeadPlanned--
			}
		} else {
			v.find(LostKind, "message %d, id %s, planned dead %v: %d runs", m.Seq, id, planned, len(m.Runs))
		}
	}
	for i, l := range mine {
		switch {
		case i > 0 && t.Reruns:
			v.Reburied++
		case i > 0:
			v.find(TwiceKind, "message %d, id %s: entries %s and %s", m.Seq, id, mine[0].EntryID, l.EntryID)
		case !planned && l.Reason == "lost":
			v.find(DeadLossKind, "message %d, id %s, entry %s: %d leases lost in a row", m.Seq, id, l.EntryID, l.Lost)
		case !planned:
			v.find(DeadKind, "message %d, id %s, entry %s, reason %s", m.Seq, id, l.EntryID, l.Reason)
		case l.RC != t.Plan.MaxRetries+1 || l.Reason != "retries" || !slices.Equal(l.Fields, t.Plan.Fields(m.Seq)):
			v.find(CounterKind, "message %d, id %s, entry %s: rc %d, reason %q, fields %q", m.Seq, id, l.EntryID, l.RC, l.Reason, l.Fields)
		}
	}
}

func (v *Verdict) runs(m *Message, id string, t Trial) {
	attempts := t.Plan.Attempts(m.Seq)
	succeeded := 0
	for i, r := range m.Runs {
		v.Runs++
		switch r.Outcome {
		case OK:
			v.Succeeded++
			succeeded++
		case Fail:
			v.Failed++
		case Bad:
			v.find(BadKind, "message %d, entry id seen as %s by %s", m.Seq, r.ID, r.Worker)
		case Cut:
			v.Cut++
		default:
			v.Unended++
		}
		if r.ID != id {
			v.find(WrongIDKind, "message %d: %s, handled as %s by %s", m.Seq, id, r.ID, r.Worker)
		}
		if r.Attempt > attempts {
			v.find(BeyondKind, "message %d: attempt %d by %s, planned are %d", m.Seq, r.Attempt, r.Worker, attempts)
		}
		if r.Attempt > 1 && !slices.ContainsFunc(m.Runs[:i], func(o *Run) bool { return o.Attempt == r.Attempt-1 && o.Outcome == Fail }) {
			v.find(SpentKind, "message %d: attempt %d by %s, and attempt %d never failed", m.Seq, r.Attempt, r.Worker, r.Attempt-1)
		}
		again := false
		for _, o := range m.Runs[:i] {
			again = again || o.Attempt == r.Attempt && (o.Outcome == OK || o.Outcome == Fail) && (r.Outcome == OK || r.Outcome == Fail)
			v.pair(m, o, r, t)
		}
		if again {
			v.Repeated++
		}
	}
	if succeeded > 1 {
		v.Duplicated++
		v.Second += succeeded - 1
	}
}

// wakeful is how soon after it woke a run shows that its worker had decided on it before it was stopped.
const wakeful = int64(100 * time.Millisecond)

// decidedAsleep says that a worker was stopped between its last look at the lease and the handler's first line, and that the
// run changed nothing. No look at anything can prevent that.
func (t Trial) decidedAsleep(r *Run) bool {
	return r.Settled == "lost" && slices.ContainsFunc(t.Asleep[r.Worker], func(s Span) bool { return s.meets(r.Start-wakeful, r.Start) })
}

// pair looks at two runs of a message, o the earlier one.
func (v *Verdict) pair(m *Message, o, r *Run, t Trial) {
	if t.decidedAsleep(r) {
		return
	}
	until := o.Until()
	asleep := slices.ContainsFunc(t.Asleep[o.Worker], func(s Span) bool { return s.meets(o.Start, r.Start) })
	if (until == 0 || r.Start < until) && !asleep {
		v.find(BesideKind, "message %d: %s ran it from %d to %d, %s began at %d (lost %d)", m.Seq, o.Worker, o.Start, until, r.Worker, r.Start, r.Lost)
	}
	through := o.Outcome == OK || o.Outcome == Fail && r.Attempt <= o.Attempt
	if !through || o.End >= r.Start || t.Reruns {
		return
	}
	final := o.Settled == "acked" || o.Settled == "failed" || o.Settled == "dead"
	switch {
	case final && o.SettledAt < r.Start:
		v.find(UndoneKind, "message %d: %s by %s at %d, run again by %s at %d as attempt %d", m.Seq, o.Settled, o.Worker, o.SettledAt, r.Worker, r.Start, r.Attempt)
	case !asleep && (o.gone == 0 || o.gone > r.Start):
		v.find(NeedlessKind, "message %d: %s by %s at %d, run again by %s at %d as attempt %d (lost %d)", m.Seq, o.Outcome, o.Worker, o.End, r.Worker, r.Start, r.Attempt, r.Lost)
	}
}
