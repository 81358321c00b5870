package model

// Faults is the set of what may go wrong, or merely happen, in a scenario. What is not in the set does not happen.
type Faults uint64

const (
	failing         Faults = 1 << iota // handlers return errors
	pausing                            // one SIGSTOP, and its SIGCONT
	freezing                           // the server stands still once, nobody sees an error
	clockStepping                      // the server's clock steps once, by clockStep
	destroying                         // a group is destroyed once; positions are recorded
	retryDestroying                    // the retry stream's group is destroyed once and made again at 0
	lateGroup                          // the second group is made at any time, at the head
	compacting                         // the janitor trims
	settingID                          // an operator moves a group to the head by XGROUP SETID, once
	seeking                            // a group is moved to the head by our script, once
	trimming                           // a foreign hand trims an entry in flight, once
	redriving                          // dead letters are redriven, each message once
	farDue                             // what failed in the main stream is due after the end of the search
	freshStart                         // worker 0 starts unregistered
	strays                             // the server executes calls that their client has given up
	apart                              // a read is sent, executed and answered in three steps
	losingReplies                      // one reply to a read is lost on its way
	losingHash                         // the workers hash is lost once
	quitting                           // graceful stops, which cut handlers
	poisoned                           // message 0 kills whoever starts it
	poisonedReads                      // and whoever takes it off the wire
	seededSuspect                      // the last message has lost leases already
	gaps                               // sweeps judge how long nobody swept
	prompt                             // time waits for every heartbeat and for a sweep
	stutter                            // drains meet a stall that the sweeps see once a visibility
	deduping                           // successes leave markers
	overrunning                        // handlers run past HandlerTimeout and may be deaf to it
	failover                           // a replica that lacks the last writes becomes master, once
)

// Model is one scenario: its bounds, what may happen in it, the rules it breaks, and what the search must find.
type Model struct {
	Name    string
	Want    Kind    // "" = no violation may be found; else one of this kind must be
	Mutants Mutants // rules broken; none in a scenario that must find nothing
	Long    int     // states of a long search (default 2.5 million)
	Short   int     // states of a search in the tests (default: 40,000 where nothing may be found, else as Long)

	allow     Faults
	groups    int         // default 1; with 2, each worker serves its own
	msgs      int         // default 2
	vis       [nWork]int8 // visibility of each worker in ticks, default 2
	grace     int8        // ticks over its visibility before an owner is marked dead; none is the harshest
	incs      uint8       // incarnations of a worker, default 2
	kills     uint8
	calm      [nWork]bool // this worker's heartbeats never fail
	clockStep int8
	askOne    uint64 // one state in so many is asked whether its messages can still be finished, default 64

	replicas *replicas
}

func (m *Model) may(f Faults) bool { return m.allow&f != 0 }

func (m *Model) is(x Mutants) bool { return m.Mutants&x != 0 }

// withDefaults fills in what a scenario leaves open.
func (m *Model) withDefaults() *Model {
	or := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	or(&m.Long, 2_500_000)
	if m.Want == "" {
		or(&m.Short, 40_000)
	}
	or(&m.Short, m.Long)
	or(&m.groups, 1)
	or(&m.msgs, nMsg)
	if m.vis == [nWork]int8{} || m.is(wideSweeps) {
		m.vis = [nWork]int8{2, 2}
	}
	if m.incs == 0 {
		m.incs = 2
	}
	if m.askOne == 0 {
		m.askOne = 64
	}
	return m
}

// groupOf is the group that a worker serves.
func (m *Model) groupOf(w int) int {
	if m.groups == 2 {
		return w
	}
	return 0
}

// nameOf is what a worker's incarnation is called in Redis; never 0.
func (m *Model) nameOf(w int, inc uint8) uint8 {
	if m.is(sameName) {
		return 8 + 1
	}
	return uint8(w+1)*8 + inc
}

func workerOf(name uint8) int { return int(name/8) - 1 }

func incOf(name uint8) uint8 { return name % 8 }

func (m *Model) visOf(name uint8) int8 { return m.vis[workerOf(name)] }

func (m *Model) maxVis() int8 { return max(m.vis[0], m.vis[1]) }

// half is the least lease a handler starts with (rule 9).
func (m *Model) half(w int) int8 { return (m.vis[w] + 1) / 2 }

// suspect: from here on a message runs alone (rule 13).
func (m *Model) suspect(c Counts) bool { return c.lost >= suspectAt && !m.is(noSuspects) }

// initial has every worker registered and every group (but a late one) made at the head.
func (m *Model) initial() State {
	var s State
	for gi := range m.groups {
		if m.may(lateGroup) && gi == 1 {
			continue
		}
		s.g[gi].made, s.g[gi].recorded = 1, 1
	}
	if m.may(seededSuspect) {
		x := uint8(m.msgs - 1)
		s.pub, s.mnext = 1<<x, 1
		s.g[0].last, s.g[0].truth[x].lost = 1, suspectAt
		s.g[0].addRetry(x, Counts{lost: suspectAt})
	}
	for w := range s.w {
		s.w[w] = Worker{up: up, inc: 1, reg: 1, lease: m.vis[w]}
		if m.may(freshStart) && w == 0 {
			s.w[w].reg, s.w[w].lease = 0, 0
			continue
		}
		s.g[m.groupOf(w)].setRec(Rec{name: m.nameOf(w, 1), state: live})
	}
	return s
}
