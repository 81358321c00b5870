package model

import (
	"fmt"
	"strings"
)

// Move is one step: what and to whom. It prints as text[kind] with its arguments.
type Move struct{ kind, a, b, c uint8 }

// Kinds of moves; the comment of each says what it stands for where its text does not.
const (
	_ uint8 = iota
	publish
	tick
	freeze
	thaw
	clockStep
	makeGroup
	destroyGroup
	destroyRetry
	recreateGroup
	recordPos
	readFloor
	compact
	compactAbove // XDEL above a floor that an old entry pins
	setID
	seekHead
	foreignTrim
	looseHash
	fallBehind
	failOver
	meetMaster
	promote
	redrive
	sweep
	mark
	empty
	takeForeign
	adoptName
	remove
	boot
	kill
	sigstop
	sigcont
	stop
	leave
	hbSend
	hbExec
	hbTake
	hbGiveUp
	strayExec
	strayReadExec
	readSend
	readExec
	readTake
	readLost
	adoptOwn
	sendArm
	arm
	start
	skip
	returnOK
	returnErr
	timeUp
	failDeaf
	giveUpOn
	lateReturn
	cut
	ack
	failIt
	releaseIt
	releaseOld
	oldDone
	handBack
	claimBack
	refusedCopy
	kinds
)

var text = [kinds]string{
	publish: "publish m%d", tick: "tick", freeze: "server freezes", thaw: "server goes on", clockStep: "server clock steps by %d",
	makeGroup: "group %d made at the head", destroyGroup: "XGROUP DESTROY of group %d",
	destroyRetry:  "XGROUP DESTROY of group %d's retry stream group, made again at 0",
	recreateGroup: "worker %d recreates its group after id %d", recordPos: "position of group %d recorded: after id %d",
	readFloor: "janitor reads the floor: %d", compact: "compact below %d", compactAbove: "delete entry %d above the floor",
	setID: "operator: XGROUP SETID group %d 0", seekHead: "seek group %d to the head", foreignTrim: "a foreign hand trims entry %d",
	looseHash: "the workers hash of group %d is lost", fallBehind: "the replica falls behind",
	failOver: "failover: the replica becomes master", meetMaster: "worker %d meets the new master",
	promote: "promote m%d of group %d", redrive: "redrive m%d of group %d (x/%d)",
	sweep: "worker %d sweeps (judges continuity)", mark: "worker %d marks worker %d/%d dead",
	empty:       "worker %d empties: takes m%d of worker %d",
	takeForeign: "worker %d takes m%d of foreign owner (worker %d)", adoptName: "worker %d enters unknown owner worker %d/%d into the hash",
	remove: "worker %d removes owner worker %d/%d",
	boot:   "worker %d starts as incarnation %d", kill: "kill -9 worker %d", sigstop: "SIGSTOP worker %d", sigcont: "SIGCONT worker %d",
	stop: "worker %d is told to stop: reads and starts no more", leave: "worker %d ends",
	hbSend: "worker %d/%d sends heartbeat", hbExec: "server executes heartbeat of worker %d", hbTake: "worker %d takes the answer",
	hbGiveUp:  "worker %d gives its heartbeat up (timeout)",
	strayExec: "server executes an old heartbeat or registration of worker %d", strayReadExec: "server executes an old read of worker %d: m%d",
	readSend: "worker %d/%d sends a read", readExec: "server executes the read of worker %d: m%d (%d, 1 = retry stream)",
	readTake: "worker %d takes the reply of its read", readLost: "the reply of worker %d's read is lost",
	adoptOwn: "worker %d releases m%d that it finds pending for itself and does not hold",
	sendArm:  "worker %d sends suspect m%d to its record", arm: "server writes worker %d's suspect m%d into its record",
	start: "worker %d starts m%d", skip: "worker %d finds the marker of m%d: skipped",
	returnOK: "worker %d handler of m%d returns nil", returnErr: "worker %d handler of m%d returns an error",
	timeUp: "worker %d handler of m%d is told that its time is up", failDeaf: "worker %d fails m%d, whose handler does not return",
	giveUpOn:   "worker %d counts the cancelled handler of m%d as deaf",
	lateReturn: "worker %d late handler of m%d returns", cut: "worker %d handler of m%d is cut by the shutdown, released",
	ack: "worker %d acks m%d", failIt: "worker %d fails m%d", releaseIt: "worker %d releases m%d",
	releaseOld: "worker %d releases m%d of its former name", oldDone: "worker %d finds nothing more under its former name",
	handBack: "worker %d hands running m%d back under its id", claimBack: "worker %d claims m%d under the same id",
	refusedCopy: "worker %d fails m%d: acked, then the copy is refused (memory full)",
}

// String says the move in words.
func (mv Move) String() string {
	a := []any{mv.a, mv.b, mv.c}
	if mv.kind == clockStep {
		a[0] = int8(mv.a)
	}
	t := text[mv.kind]
	return fmt.Sprintf(t, a[:strings.Count(t, "%")]...)
}

// emitter takes a successor, the move that led to it, and what is wrong with the move itself (nil = nothing).
type emitter func(n State, mv Move, bad *Violation)

// next gives every successor of a state.
func (m *Model) next(s *State, emit emitter) {
	m.world(s, emit)
	m.failovers(s, emit)
	if s.frozen == 0 {
		m.operator(s, emit)
		for w := range s.w {
			if s.w[w].up == up && s.reaches(w) {
				m.sweeps(s, w, emit)
			}
		}
		m.janitor(s, emit)
	}
	for w := range s.w {
		m.process(s, w, emit)
		m.heartbeat(s, w, emit)
		m.reading(s, w, emit)
		for i := range s.w[w].h {
			if s.w[w].h[i].stage != 0 {
				m.handling(s, w, i, emit)
			}
		}
	}
}
