package xstreamq_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// What a killed worker held is done by another within its visibility timeout and a little.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.process(t, workerSpec{Visibility: 3 * time.Second, Concurrency: 20, Hold: true})
	ids := s.tasks(1, 20, "")
	a.expect("begin", 20)
	b := s.process(t, workerSpec{Visibility: 3 * time.Second})
	a.signal(syscall.SIGKILL)
	start := time.Now()
	var runs calls
	for _, words := range b.expect("begin", 20) {
		runs.add(words[1])
		if words[2] != "1" || words[3] != "1" {
			t.Errorf("message %s came with attempt %s, lost %s; want 1 and 1", words[1], words[2], words[3])
		}
	}
	s.within(8*time.Second-time.Since(start), func() bool { return s.load() == load{} }, "all done")
	runs.each(t, ids, 1)
	s.eventually(func() bool { return s.rdb.HLen(t.Context(), s.keys.Workers).Val() == 1 }, "the dead worker's record is gone")
	for _, stream := range []string{s.keys.Main, s.keys.Retry} {
		if list := s.rdb.XInfoConsumers(t.Context(), stream, "svc").Val(); len(list) > 1 {
			t.Errorf("consumers of %s: %+v", stream, list)
		}
	}
}

// A worker stopped past its lease changes nothing when it wakes: neither its acks, nor its failures, nor its renewals.
func TestStoppedWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.process(t, workerSpec{Visibility: time.Second, Concurrency: 30, Hold: true})
	s.tasks(1, 5, "")
	s.tasks(6, 10, "fail")
	s.tasks(11, 15, "extend")
	a.expect("begin", 15)
	old := s.rdb.HKeys(t.Context(), s.keys.Workers).Val()
	a.signal(syscall.SIGSTOP)
	b := s.process(t, workerSpec{Visibility: time.Second, Hold: true, Concurrency: 30})
	for _, words := range b.expect("begin", 15) {
		if words[2] != "1" || words[3] != "1" {
			t.Errorf("message %s came with attempt %s, lost %s; want 1 and 1", words[1], words[2], words[3])
		}
	}
	a.tell("go") // read when it wakes: its handlers end before it can know
	a.signal(syscall.SIGCONT)
	for _, words := range a.expect("end", 15) {
		if words[2] != "lost" {
			t.Errorf("the stale worker's message %s ended as %s", words[1], words[2])
		}
	}
	if l := s.load(); l.pending != 15 || l.parked != 0 || l.dead != 0 {
		t.Errorf("%+v after the stale worker's settlements, want the other's 15 pending alone", l)
	}
	if names := s.rdb.HKeys(t.Context(), s.keys.Workers).Val(); len(old) != 1 {
		t.Errorf("records %v", old)
	} else {
		for _, name := range names {
			if name == old[0] {
				t.Errorf("the stale worker goes on as %s", name)
			}
		}
	}
	b.tell("go")
	outcomes := map[string]int{}
	for _, words := range b.expect("end", 15) {
		outcomes[words[2]]++
	}
	if outcomes["acked"] != 10 || outcomes["failed"] != 5 {
		t.Errorf("the owner's messages ended as %v", outcomes)
	}
	// Both go on, the stale one under a new name; the failures come once more, with one attempt spent.
	var runs calls
	b.signal(syscall.SIGTERM)
	for _, words := range a.expect("begin", 1) {
		runs.add(words[1])
		if words[2] == "1" {
			t.Errorf("message %s came with attempt 1, its owner had failed it", words[1])
		}
	}
}

// Leases of one group run by each owner's own timeout: the short ones of a deploy do not end the long ones.
func TestMixedVisibility(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	long := s.process(t, workerSpec{Visibility: 60 * time.Second, Concurrency: 10, Hold: true})
	ids := s.tasks(1, 10, "")
	long.expect("begin", 10)
	short := s.process(t, workerSpec{Visibility: time.Second, Concurrency: 10})
	other := s.process(t, workerSpec{Visibility: 3 * time.Second, Concurrency: 10})
	long.signal(syscall.SIGSTOP) // silent for longer than the others' leases
	time.Sleep(5 * time.Second)
	more := s.tasks(11, 20, "")
	s.eventually(func() bool { return s.load() == load{pending: 10} }, "the others work, the long one's messages stay")
	long.signal(syscall.SIGCONT)
	long.tell("go")
	for _, words := range long.expect("end", 10) {
		if words[2] != "acked" {
			t.Errorf("message %s ended as %s", words[1], words[2])
		}
	}
	s.settled()
	runs := &calls{}
	for _, p := range []*process{short, other, long} {
		p.signal(syscall.SIGTERM)
		receiveOne(t, endOf(p.done), "the worker ends")
		for len(p.lines) > 0 {
			var kind, id string
			if line := <-p.lines; scan(line, &kind, &id) && kind == "begin" {
				runs.add(id)
			}
		}
	}
	runs.each(t, more, 1)
	for _, id := range ids {
		if runs.by[id] != 0 {
			t.Errorf("message %s ran again beside its live owner", id)
		}
	}
}

// A message that kills its worker each time dies alone: those read with it are done.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.tasks(1, 20, "slow")
	poison := s.tasks(21, 21, "die")[0]
	s.tasks(22, 32, "slow")
	spec := workerSpec{Visibility: time.Second, Concurrency: 16, MaxLost: 3}
	workers := []*process{s.process(t, spec), s.process(t, spec)}
	deaths := 0
	s.within(time.Minute, func() bool {
		for i, p := range workers {
			select {
			case <-p.done:
				deaths++
				workers[i] = s.process(t, spec)
			default:
			}
		}
		l := s.load()
		return l.dead > 0 && l.pending+l.retry+l.parked == 0 && s.delivered()
	}, "one dead, the others done")
	list := s.entries(s.keys.DLQ)
	if len(list) != 1 || list[0].ID != poison || list[0].Reason != "lost" || list[0].Lost != 4 || list[0].RC != 0 {
		t.Errorf("dead letters %+v, want the poison alone, lost 4", list)
	}
	if deaths != 4 {
		t.Errorf("%d workers died, want 4: three are survived", deaths)
	}
}

// A worker that is terminated hands what it read and did not start to another at once, nothing counted.
func TestTerminatedWorker(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a := s.process(t, workerSpec{Visibility: 30 * time.Second, Concurrency: 2})
	b := s.process(t, workerSpec{Visibility: 30 * time.Second, Wait: true})
	s.tasks(1, 500, "") // quick ones, so that it reads ahead
	a.expect("end", 500)
	pipe := s.rdb.TxPipeline()
	for range 2 {
		pipe.Do(t.Context(), "xadd", s.keys.Main, "*", "body", `{"id":501,"do":"hold"}`)
	}
	for range 20 {
		pipe.Do(t.Context(), "xadd", s.keys.Main, "*", "body", `{"id":503}`, "rc", "3", "lost", "1")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.expect("begin", 2)
	s.eventually(func() bool { return s.load().pending == 22 }, "20 are read and not started")
	start := time.Now()
	a.signal(syscall.SIGTERM)
	b.tell("run")
	for _, words := range b.expect("begin", 20) {
		if words[2] != "4" || words[3] != "1" {
			t.Errorf("message %s came with attempt %s, lost %s; want 4 and 1", words[1], words[2], words[3])
		}
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("handed over after %v", took)
	}
	a.tell("go")
	a.expect("stopped", 1)
	receiveOne(t, endOf(a.done), "the worker ends")
	if code := a.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.settled()
}

// A stream's keys have no lock that a killed worker could leave: each that is no stream and no state of messages ends by
// itself, or is one of the few that are kept.
func TestKilledWorkersLeaveNoLocks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for range 3 {
		p := s.process(t, workerSpec{Visibility: time.Second, Hold: true})
		s.tasks(1, 3, "")
		p.expect("begin", 3)
		p.signal(syscall.SIGKILL)
		receiveOne(t, endOf(p.done), "it dies")
	}
	last := s.process(t, workerSpec{Visibility: time.Second})
	last.expect("end", 9)
	s.settled()
	g := s.keys
	kept := map[string]bool{
		g.Main: true, g.Retry: true, g.DLQ: true, g.Workers: true, g.Meta: true, g.Stream.Meta: true, g.Groups: true,
		s.prefix + keys.Registry: true, g.Due: true, g.Parked: true,
	}
	for _, key := range everyKey(t, s.rdb, s.prefix) {
		if !kept[key] && s.rdb.PTTL(t.Context(), key).Val() < 0 {
			t.Errorf("key %s stays for ever", key)
		}
	}
}
