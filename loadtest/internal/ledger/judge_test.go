package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/loadtest/internal/plan"
)

// of finds a message whose plan is as wanted.
func of(t *testing.T, p plan.Plan, attempts int, dead bool) int64 {
	t.Helper()
	for seq := int64(1); seq < 100_000; seq++ {
		if p.Attempts(seq) == attempts && p.Dead(seq) == dead {
			return seq
		}
	}
	t.Fatalf("no message with %d attempts, dead %v", attempts, dead)
	return 0
}

var testPlan = plan.Plan{Seed: 1, Fail: 50, MaxRetries: 2}

// judge reads hand-written rows: {N} in them is the message's number. The letters are those given.
func judge(t *testing.T, seq int64, producer string, workers map[string]string, trial Trial) *Verdict {
	t.Helper()
	b := NewBook()
	fill := func(s string) *strings.Reader {
		return strings.NewReader(strings.ReplaceAll(s, "{N}", fmt.Sprint(seq)))
	}
	if err := b.Producer(fill(producer)); err != nil {
		t.Fatal(err)
	}
	for name, rows := range workers {
		if err := b.Worker(name, fill(rows)); err != nil {
			t.Fatal(err)
		}
	}
	b.Gone("dead", 500)
	trial.Plan = testPlan
	return Judge(b, trial)
}

const sent = "I {N} 100\nP {N} 110 1-1\n"

func letter(seq int64) Letter {
	return Letter{EntryID: "9-9", ID: "1-1", RC: 3, Reason: "retries", Fields: testPlan.Fields(seq)}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	done, later, dead := of(t, testPlan, 1, false), of(t, testPlan, 2, false), of(t, testPlan, 3, true)
	const ok = "S 1 200 {N} 1 0 1-1\nE 1 210 ok\nO 1 220 acked\n"
	const failed = "S 1 200 {N} 1 0 1-1\nE 1 210 fail\nO 1 220 failed\n"
	const dies = failed + "S 2 300 {N} 2 0 1-1\nE 2 310 fail\nO 2 320 failed\nS 3 400 {N} 3 0 1-1\nE 3 410 fail\nO 3 420 dead\n"
	changed := func(f func(*Letter)) []Letter {
		l := letter(dead)
		f(&l)
		return []Letter{l}
	}
	for _, c := range []struct {
		name     string
		seq      int64
		producer string
		workers  map[string]string
		trial    Trial
		want     string // kinds of findings
		check    func(*Verdict) bool
	}{
		{name: "done", seq: done, producer: sent, workers: map[string]string{"a": ok}, check: func(v *Verdict) bool {
			return v.Confirmed == 1 && v.Succeeded == 1 && v.Duplicated == 0 && v.Runs == 1
		}},
		{name: "done at the second attempt", seq: later, producer: sent, workers: map[string]string{
			"a": failed, "b": "S 1 300 {N} 2 0 1-1\nE 1 310 ok\nO 1 320 acked\n",
		}, check: func(v *Verdict) bool {
			return v.Failed == 1 && v.Succeeded == 1 && v.Duplicated == 0 && v.Repeated == 0
		}},
		{
			name: "dead", seq: dead, producer: sent, workers: map[string]string{"a": dies}, trial: Trial{Letters: []Letter{letter(dead)}},
			check: func(v *Verdict) bool { return v.DeadPlanned == 1 && v.Dead == 1 },
		},
		{name: "never handled", seq: done, producer: sent, want: LostKind},
		{name: "begun and never ended", seq: done, producer: sent, workers: map[string]string{"dead": "S 1 200 {N} 1 0 1-1\n"}, want: LostKind},
		{name: "failed and never again", seq: later, producer: sent, workers: map[string]string{"a": failed}, want: LostKind},
		{name: "all attempts failed and no letter", seq: dead, producer: sent, workers: map[string]string{"a": dies}, want: LostKind},
		{
			name: "lost when that is admitted", seq: done, producer: sent, trial: Trial{Admit: []Span{{105, 115}}},
			check: func(v *Verdict) bool { return v.Admitted == 1 },
		},
		{
			name: "seen, never confirmed, and lost in a failover", seq: later, producer: "I {N} 100\n", workers: map[string]string{"a": failed},
			trial: Trial{Unsure: []Span{{90, 300}}}, check: func(v *Verdict) bool { return v.Admitted == 1 },
		},
		{name: "confirmed, and lost in a failover", seq: later, producer: sent, workers: map[string]string{"a": failed}, trial: Trial{Unsure: []Span{{90, 300}}}, want: LostKind},
		{name: "lost beside what is admitted", seq: done, producer: sent, trial: Trial{Admit: []Span{{111, 115}}}, want: LostKind},
		{name: "uncertain and not stored", seq: done, producer: "I {N} 100\n", check: func(v *Verdict) bool { return v.Uncertain == 1 && v.Stored == 0 }},
		{
			name: "uncertain and stored", seq: done, producer: "I {N} 100\n", workers: map[string]string{"a": ok},
			check: func(v *Verdict) bool { return v.Uncertain == 1 && v.Stored == 1 && v.Succeeded == 1 },
		},
		{name: "uncertain, stored and lost", seq: later, producer: "I {N} 100\n", workers: map[string]string{"a": failed}, want: LostKind},
		{name: "twice after a kill", seq: done, producer: sent, workers: map[string]string{
			"dead": "S 1 200 {N} 1 0 1-1\nE 1 210 ok\n", "b": "S 1 900 {N} 1 1 1-1\nE 1 910 ok\nO 1 920 acked\n",
		}, check: func(v *Verdict) bool { return v.Duplicated == 1 && v.Second == 1 && v.Repeated == 1 }},
		{name: "again after a kill within a run", seq: done, producer: sent, workers: map[string]string{
			"dead": "S 1 200 {N} 1 0 1-1\n", "b": "S 1 900 {N} 1 1 1-1\nE 1 910 ok\nO 1 920 acked\n",
		}, check: func(v *Verdict) bool { return v.Duplicated == 0 && v.Unended == 1 && v.Repeated == 0 }},
		{name: "again though acked", seq: done, producer: sent, workers: map[string]string{"a": ok, "b": "S 1 900 {N} 1 1 1-1\nE 1 910 ok\nO 1 920 acked\n"}, want: UndoneKind},
		{
			name: "again though acked, admitted", seq: done, producer: sent, workers: map[string]string{"a": ok, "b": "S 1 900 {N} 1 1 1-1\nE 1 910 ok\nO 1 920 acked\n"},
			trial: Trial{Reruns: true}, check: func(v *Verdict) bool { return v.Second == 1 },
		},
		{name: "the failure forgotten", seq: later, producer: sent, workers: map[string]string{
			"a": failed, "b": "S 1 300 {N} 1 0 1-1\nE 1 310 fail\nO 1 320 failed\nS 2 400 {N} 2 0 1-1\nE 2 410 ok\nO 2 420 acked\n",
		}, want: UndoneKind},
		{name: "again though its worker lives", seq: done, producer: sent, workers: map[string]string{
			"a": "S 1 200 {N} 1 0 1-1\nE 1 210 ok\nO 1 320 lost\n", "b": "S 1 300 {N} 1 1 1-1\nE 1 310 ok\nO 1 320 acked\n",
		}, want: NeedlessKind},
		{name: "again since its worker slept", seq: done, producer: sent, workers: map[string]string{
			"a": "S 1 200 {N} 1 0 1-1\nE 1 210 ok\nO 1 320 lost\n", "b": "S 1 300 {N} 1 1 1-1\nE 1 310 ok\nO 1 320 acked\n",
		}, trial: Trial{Asleep: map[string][]Span{"a": {{211, 290}}}}, check: func(v *Verdict) bool { return v.Second == 1 }},
		{name: "begun as its worker woke, in vain", seq: done, producer: sent, workers: map[string]string{
			"a": ok, "b": "S 1 900 {N} 1 0 1-1\nE 1 910 ok\nO 1 920 lost\n",
		}, trial: Trial{Asleep: map[string][]Span{"b": {{150, 899}}}}, check: func(v *Verdict) bool { return v.Second == 1 }},
		{name: "begun as its worker woke, and settled", seq: done, producer: sent, workers: map[string]string{
			"a": ok, "b": "S 1 900 {N} 1 0 1-1\nE 1 910 ok\nO 1 920 acked\n",
		}, trial: Trial{Asleep: map[string][]Span{"b": {{150, 899}}}}, want: UndoneKind},
		{name: "begun in vain long after it woke", seq: done, producer: sent, workers: map[string]string{
			"a": ok, "b": "S 1 200000900 {N} 1 0 1-1\nE 1 200000910 ok\nO 1 200000920 lost\n",
		}, trial: Trial{Asleep: map[string][]Span{"b": {{150, 899}}}}, want: UndoneKind},
		{
			name: "buried again where that is admitted", seq: dead, producer: sent, workers: map[string]string{"a": dies},
			trial: Trial{Letters: []Letter{letter(dead), letter(dead)}, Reruns: true}, check: func(v *Verdict) bool { return v.Reburied == 1 },
		},
		{name: "beside a live one", seq: done, producer: sent, workers: map[string]string{"a": ok, "b": "S 1 205 {N} 1 1 1-1\nE 1 230 ok\nO 1 240 lost\n"}, want: BesideKind},
		{
			name: "beside a sleeping one", seq: done, producer: sent, workers: map[string]string{"a": ok, "b": "S 1 205 {N} 1 1 1-1\nE 1 230 ok\nO 1 240 lost\n"},
			trial: Trial{Asleep: map[string][]Span{"a": {{201, 204}}}}, check: func(v *Verdict) bool { return v.Second == 1 },
		},
		{name: "beside a worker killed later", seq: done, producer: sent, workers: map[string]string{
			"dead": "S 1 200 {N} 1 0 1-1\n", "b": "S 1 450 {N} 1 1 1-1\nE 1 460 ok\nO 1 470 acked\n",
		}, want: BesideKind},
		{name: "an attempt spent by a kill", seq: later, producer: sent, workers: map[string]string{
			"dead": "S 1 200 {N} 1 0 1-1\n", "b": "S 1 900 {N} 2 0 1-1\nE 1 910 ok\nO 1 920 acked\n",
		}, want: SpentKind},
		{name: "beyond the plan", seq: done, producer: sent, workers: map[string]string{
			"a": "S 1 200 {N} 1 0 1-1\nE 1 210 fail\nO 1 220 failed\n", "b": "S 1 900 {N} 2 0 1-1\nE 1 910 ok\nO 1 920 acked\n",
		}, want: BeyondKind},
		{name: "under another id", seq: done, producer: sent, workers: map[string]string{"a": strings.ReplaceAll(ok, "1-1", "2-1")}, want: WrongIDKind},
		{name: "never sent", seq: done, workers: map[string]string{"a": ok}, want: UnknownKind},
		{name: "altered", seq: done, producer: sent, workers: map[string]string{"a": "S 1 200 {N} 1 0 1-1\nE 1 210 bad\nO 1 220 acked\n"}, want: BadKind + " " + LostKind},
		{name: "dead though it is to succeed", seq: done, producer: sent, workers: map[string]string{"a": ok}, trial: Trial{Letters: []Letter{letter(done)}}, want: DeadKind},
		{name: "dead by losses", seq: done, producer: sent, trial: Trial{Letters: []Letter{{EntryID: "9-9", ID: "1-1", Lost: 11, Reason: "lost"}}}, want: DeadLossKind},
		{name: "a letter of nothing known", seq: done, producer: sent, workers: map[string]string{"a": ok}, trial: Trial{Letters: []Letter{{EntryID: "9-9", ID: "5-5"}}}, want: DeadKind},
		{name: "two letters", seq: dead, producer: sent, workers: map[string]string{"a": dies}, trial: Trial{Letters: []Letter{letter(dead), letter(dead)}}, want: TwiceKind},
		{name: "a letter's counter", seq: dead, producer: sent, workers: map[string]string{"a": dies}, trial: Trial{Letters: changed(func(l *Letter) { l.RC = 2 })}, want: CounterKind},
		{name: "a letter's reason", seq: dead, producer: sent, workers: map[string]string{"a": dies}, trial: Trial{Letters: changed(func(l *Letter) { l.Reason = "lost" })}, want: CounterKind},
		{name: "a letter's fields", seq: dead, producer: sent, workers: map[string]string{"a": dies}, trial: Trial{Letters: changed(func(l *Letter) { l.Fields = l.Fields[:4] })}, want: CounterKind},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := judge(t, c.seq, c.producer, c.workers, c.trial)
			var kinds []string
			for kind := range v.Findings {
				kinds = append(kinds, kind)
			}
			slices.Sort(kinds)
			if got := strings.Join(kinds, " "); got != c.want {
				t.Errorf("found %q, want %q; %+v", got, c.want, v)
			}
			if c.check != nil && !c.check(v) {
				t.Errorf("%+v", v)
			}
		})
	}
}

func TestOrphans(t *testing.T) {
	t.Parallel()
	b := NewBook()
	for name, rows := range map[string]string{
		"dead": "S 1 200 1 1 0 1-1\nE 1 210 ok\nO 1 220 acked\nS 2 200 2 1 0 2-1\nS 3 200 3 1 0 3-1\nE 3 210 ok\nS 4 200 4 1 0 4-1\nE 4 210 ok\n",
		"b":    "S 1 1500 2 1 1 2-1\nE 1 1600 ok\nS 2 2500 3 1 1 3-1\nS 3 3500 3 1 2 3-1\nE 3 3600 ok\n",
	} {
		if err := b.Worker(name, strings.NewReader(rows)); err != nil {
			t.Fatal(err)
		}
	}
	list := b.Orphans("dead", 500)
	if want := []Orphan{{2, 1, 1000}, {3, 1, 2000}}; !slices.Equal(list, want) {
		t.Errorf("orphans %v, want %v", list, want)
	}
	if n := b.Again("dead"); n != 1 {
		t.Errorf("%d were done again, want 1: message 3", n)
	}
}
