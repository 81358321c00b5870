package model

// The bounds of the model: how many of each thing a state can hold. A move that would need more is not made.
const (
	nMsg, nWork, nGroup = 2, 2, 2
	maxRetries          = 1 // a message survives one failure
	maxLost             = 2 // and two lost leases in a row
	maxCut              = 1 // and one shutdown that cuts its handler
	suspectAt           = 2 // lost leases from which on a message runs alone (rule 13)
	gapLimit            = 3 // sweep intervals (= ticks) without a sweep that still count as continuity (rule 12)
	stale               = 255
)

// Counts travel with every copy of a message (rule 4).
type Counts struct{ rc, lost, cut uint8 }

// Entry is one entry of a stream; id 0 is an empty slot.
type Entry struct {
	id, msg uint8
	Counts
}

// Pend is one line of a group's pending list. idle is kept only for the mutant that goes by it.
type Pend struct {
	id, own, msg uint8
	idle         int8
}

// Parked is one parked copy; kind and src are its member.
type Parked struct {
	kind, src, msg uint8
	Counts
}

// What a parked member's name begins with: m/, r/, x/. A source's kind is its stream + 1.
const (
	fromMain, fromRetry, fromDead = 1, 2, 3
)

// Dead is one dead letter.
type Dead struct {
	id, msg, reason uint8
	Counts
}

// Reasons of a dead letter.
const (
	byRetries, byLost, byCut = 1, 2, 3
)

// Rec is one field of the workers hash: the lease of all that consumer holds.
type Rec struct {
	name, state uint8
	age         int8 // server time since the last heartbeat; below zero: it lies in the future
	suspect     uint8
}

// States of a record; foreign is an unknown owner that a sweep has entered.
const (
	live, markedDead, foreign = 1, 2, 3
)

// Group is one group with its retry stream, parked set, dead letters and bookkeeping.
type Group struct {
	made, recorded, pos, last uint8
	pel                       [4]Pend
	rlast, rnext              uint8
	retry                     [5]Entry
	rpel                      [4]Pend
	parked                    [4]Parked
	dnext                     uint8
	dead                      [4]Dead
	recs                      [8]Rec
	swept, hold               int8  // ticks since the last sweep; ticks that reclaim still stands still (a mutant's)
	seen                      uint8 // markers of successes, a bit per message
	// what the checks know, a bit per message
	ok, waive, redriven uint8
	settled             uint8        // a success reached the server: its marker should stand
	truth               [nMsg]Counts // what the counters should say
}

// Server is all that a master holds, and a replica after it.
type Server struct {
	pub, mnext uint8 // messages published, last id given
	main       [3]Entry
	g          [nGroup]Group
}

// Stages of a message inside a worker.
const (
	buffered = 1 + iota
	running
	finished // returned nil or skipped, the ack is to be executed
	failed   // returned an error, the fail is to be executed
	arming   // a suspect whose id is on its way into the workers record
	armed    // a suspect whose id stands there
	overdue  // its time is up, the handler has not returned yet
	deaf     // failed for being overdue, the handler goes on
	zombie   // handed back while its handler runs (a mutant's)
	late     // the result of a deaf handler, to be settled after all (a mutant's)
)

// Hold is one message inside a worker, held under incarnation inc. st: 0 main stream, 1 retry stream.
type Hold struct {
	stage, inc, st, id, msg uint8
	Counts
}

// owns: the worker believes that this entry is its own.
func (h Hold) owns() bool {
	return h.stage != 0 && h.stage != zombie && h.stage != deaf && h.stage != late
}

// Phases of a call on its way, what it was, how it was answered, and what a process is doing.
const (
	sent, answered             = 1, 2
	hbRegister, hbBeat         = 1, 2
	hbOK, hbGone               = 1, 2
	down, up, stopped, leaving = 0, 1, 2, 3
	readNone, readMissed       = 0, 3 // readMissed: answered NOGROUP
)

// Worker is one process with one subscription.
type Worker struct {
	up, inc, reg  uint8 // reg: 1 when the registration was answered
	lease         int8  // what is left of the lease by the client's own clock
	hb, kind, res uint8
	hbAge         int8 // client time since the heartbeat on its way was sent
	strayName     uint8
	strayKind     uint8 // a heartbeat or registration given up by the client that the server may still execute
	strayRead     uint8 // name of a read given up that the server may still execute
	old           uint8 // former incarnation whose leftovers are being released
	read          uint8
	got           Hold
	h             [2]Hold
	beat          uint8 // heartbeat answered since the last tick (prompt scenarios)
	newMaster     uint8 // there was a failover that this process has not met yet
}

func (k *Worker) alive() bool { return k.up == up || k.up == leaving }

// State is everything: comparable, no pointers, times relative to now, so that time can go on for ever.
type State struct {
	Server
	w           [nWork]Worker
	kills, once uint8  // faults used up
	frozen      uint8  // the server stands still
	floor       uint8  // a floor read in an earlier step (a mutant's)
	waived      uint8  // a group was lost or moved by hand: second owners and copies are admitted (rule 38)
	replica     uint32 // what the replica holds since it fell behind, 0 = it keeps up
	lag         int8   // ticks since then
}

// Faults that happen once in a trace.
const (
	didPause = 1 << iota
	didDestroy
	didSeek
	didTrim
	didLose
	didClock
	didFreeze
	didFull
)

// reaches: a call of this worker would be executed now by the master it knows.
func (s *State) reaches(w int) bool { return s.frozen == 0 && s.w[w].newMaster == 0 }

// admitted: a second owner or copy is, after what was done to the group by hand.
func (s *State) admitted() bool { return s.waived != 0 || s.once&didSeek != 0 }
