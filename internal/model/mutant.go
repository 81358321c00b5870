package model

import (
	"math/bits"
	"strings"
)

// Mutants is a set of rules left out or replaced by what looks as good. The empty set is the protocol as ruled.
type Mutants uint64

// One bit for each mutant; names gives each its name.
const (
	reviving             Mutants = 1 << iota // a heartbeat writes the field even where it is missing or marked dead
	reclaimerVis                             // owners are judged by the visibility of whoever sweeps
	fromReceipt                              // the client counts its lease from the answer, not from the send
	noStartCheck                             // a handler starts on however little lease
	repeatRegistration                       // a registration of unknown outcome is tried again under its name
	overRegistering                          // a registration overwrites a field that is there
	sameName                                 // two processes share one consumer name
	noOwnerCheck                             // moves do not ask whether the entry is still pending for this consumer
	ackFirst                                 // a move acks, then copies
	memberOid                                // a parked copy is named after its stable id and count
	takenMovesNothing                        // a taken member name refuses the move
	nacking                                  // a release hands the entry on under its id
	releaseCosts                             // a release counts as a lost lease
	bareAckAfterLease                        // the batched XACK of the main stream is used when the lease has run out
	noOwnList                                // own pending entries that nobody holds are not looked for
	removeUnchecked                          // a dead owner's consumer is removed without counting what pends
	idleForeign                              // an owner missing from the hash is taken by its entries' idle time
	noForeign                                // an owner missing from the hash is left alone
	foreignRegistered                        // it dies of the largest visibility registered now, not of the largest ever registered
	holdOnGap                                // a gap between sweeps stops reclaim for a visibility instead of being credited
	holdByConnection                         // gaps are what clients saw as errors, not what the server's clock says
	wideSweeps                               // sweeps come less often than every quarter of the visibility
	noSuspects                               // a message that lost leases runs beside others
	besideSuspect                            // others start and are read between a suspect's record and its settlement
	unnamedReader                            // the only entry of a dead owner is not named its suspect
	armReviving                              // a suspect is written even where the field is missing or marked dead
	floorStale                               // compaction trims below a floor read in an earlier step
	floorElse                                // a group needs its oldest pending entry, else what follows the last delivered
	compactMissing                           // compaction goes on while a recorded group is missing
	atDollar                                 // a lost group is made again at the tail
	posIsLast                                // the recorded position of a group is the last delivered
	seekPending                              // a group is moved while entries pend in it
	markerIfRemoved                          // the marker of a success is set only when its XACK removed something
	markerAtRead                             // markers are looked at when a message is read, not when its handler starts
	cutIsFailure                             // a handler cut by a shutdown counts as a failure
	lateResult                               // the result of a handler that ran past its time is used after all
	deafKeeps                                // a handler deaf to its timeout is failed only when it returns
	cancelledBlocks                          // a handler cancelled with its lease and deaf to it keeps suspects waiting
	bareAckAfterFailover                     // what was read from the old master is acked on the new one by a bare XACK
	sameAfterFailover                        // a client goes on as it was when it meets a new master
	endMutants
)

var names = map[Mutants]string{
	reviving:             "heartbeat that revives a dead owner",
	reclaimerVis:         "reclaimer's own visibility",
	fromReceipt:          "lease counted from receipt",
	noStartCheck:         "start without lease check",
	repeatRegistration:   "registration tried again under its name",
	overRegistering:      "registration over an existing field",
	sameName:             "one name for two processes",
	noOwnerCheck:         "no owner check",
	ackFirst:             "ack before copy",
	memberOid:            "member = oid/rc",
	takenMovesNothing:    "taken member name moves nothing",
	nacking:              "release by XNACK",
	releaseCosts:         "release counts as lost",
	bareAckAfterLease:    "bare XACK after the lease",
	noOwnList:            "no rule 31",
	removeUnchecked:      "DELCONSUMER uncounted",
	idleForeign:          "unknown owner taken by idle time",
	noForeign:            "unknown owner left alone",
	foreignRegistered:    "unknown owner by the largest visibility registered now",
	holdOnGap:            "gap holds reclaim",
	holdByConnection:     "connection-based hold",
	wideSweeps:           "sweep interval over a quarter of the visibility",
	noSuspects:           "no suspects",
	besideSuspect:        "another beside a suspect",
	unnamedReader:        "only entry of a dead owner not named",
	armReviving:          "suspect written into a dead field",
	floorStale:           "floor from an earlier step",
	floorElse:            "oldest pending else last delivered",
	compactMissing:       "compaction with a recorded group missing",
	atDollar:             "group recreated at $",
	posIsLast:            "position = last delivered",
	seekPending:          "seek with entries pending",
	markerIfRemoved:      "marker only when XACK removed something",
	markerAtRead:         "marker looked at on reading",
	cutIsFailure:         "cut counts as failure",
	lateResult:           "late result of a timed-out handler used",
	deafKeeps:            "deaf handler keeps its message",
	cancelledBlocks:      "deaf handler of a lost lease keeps suspects waiting",
	bareAckAfterFailover: "bare XACK after a new master",
	sameAfterFailover:    "old incarnation goes on after a new master",
}

// AllMutants gives every mutant by itself.
func AllMutants() []Mutants {
	var all []Mutants
	for x := Mutants(1); x < endMutants; x <<= 1 {
		all = append(all, x)
	}
	return all
}

// Len is how many mutants the set holds.
func (x Mutants) Len() int { return bits.OnesCount64(uint64(x)) }

// String gives the names of the set, "as ruled" for none.
func (x Mutants) String() string {
	var list []string
	for _, y := range AllMutants() {
		if x&y != 0 {
			list = append(list, names[y])
		}
	}
	if list == nil {
		return "as ruled"
	}
	return strings.Join(list, " + ")
}
