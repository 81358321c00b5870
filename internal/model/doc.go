// Package model is an exhaustive model of the life of messages: two messages, two workers, up to two groups, and every
// interleaving of what clients, server, operators and accidents can do. It holds no client and no script. It is where a rule
// of the protocol is tried before it is written in Lua and Go, and it fails when a rule no longer keeps what it promises.
//
// # What it checks
//
// A search goes breadth first from the state in which everything is in order, and after every move asks for the promises
// that [Kind] lists: nothing lost, one copy, one valid owner, right counters, no start without ownership, no ack of what
// another owns, no second start behind a marker, nothing trimmed that a group still has to read, no dead letter for a
// neighbour's sake. From some of the states it drains ([Stuck]): the faults cease, one live worker goes on, and all
// messages must come to an end. The first trace found is a shortest one.
//
// Time is relative (ages, leases left), so it can go on for ever; a tick is one sweep interval. Whatever a state cannot hold
// is not made: see the bounds in state.go. Searches are cut off by a number of states; what lies beyond is not proved.
//
// # Scenarios
//
// ruled.go lists what must find nothing: the protocol as it stands, under a set of faults. broken.go lists mutants: each
// breaks one rule and must find the violation it names. So a check that sees nothing shows, and so does a rule that nothing
// needs. The tests search to short bounds in every run; the long search is
//
//	go run ./internal/model/cmd/model [-only text] [-scale 1] [-jobs 2] [-v]
//
// which ends with status 1 when a scenario does not do as expected. A trace reads as a story; "worker 0/2" is the second
// incarnation of worker 0, m0 the first message.
//
// # How to read it
//
// state.go has what a state holds: [Server] (the streams, groups, workers hash; all that a replica has too) and [Worker]
// (what a process knows). move.go has the moves and [Model.next], which makes all successors of a state. The moves stand by
// their actor: world.go, failover.go, operator.go, sweep.go, janitor.go, process.go, heartbeat.go, reading.go, handling.go;
// scripts.go has what one script does to the copies of a message. check.go has the promises, norm.go brings states that
// differ in nothing to one form, drain.go asks for the good end, search.go searches.
//
// # The rules in it
//
// The comments give the numbers of the protocol's rules:
//
//	1, 16   every move makes a new entry id; an entry moves only while it is pending for the mover; copy first, then ack
//	3       a parked member is named after its source; a taken name gets a suffix
//	4       failures, lost leases and cuts are counted apart
//	7       a name is registered once; a registration of unknown outcome takes a new name
//	8       owners are judged by their own visibility, marked dead, emptied, removed; an unknown owner is entered first
//	9       the lease counts from the send of the last answered heartbeat; a handler starts with half of it left
//	10      a handler past its time is failed, deaf or not; its late result is dropped
//	11      gone, NOGROUP and a new master make a new incarnation; what the old one holds is settled under its name
//	12      a gap between sweeps is credited to every heartbeat
//	13      a message that lost leases twice runs alone, and its owner's record says so
//	14, 15  XACK while the lease lasts, afterwards the owner-checked script; settling is repeated until it is answered
//	17      a stopping worker gives back what never started; a handler cut by it counts as a cut
//	19      a success leaves its marker whatever its XACK removed; markers are looked at before the start
//	25, 26  compaction below what every recorded group needs; a lost group is made again where it was
//	28      a group is moved only while nothing pends in it
//	31      own pending entries that nobody holds are looked for
//	38      second owners and copies are admitted after a group was lost or moved by hand, losses after a failover only of
//	        what was published since the replica fell behind
//
// # A new rule
//
// Write the rule as the behaviour: no flag turns it off but a mutant's. Add a fault to [Faults] if it needs one, the move
// with its text, and if the promise is new a [Kind] and its check. Add a scenario to ruled.go that has the fault, and see it
// find nothing in a long search. Then add the mutant: a bit and a name in mutant.go, the place where the rule is broken
// (m.is(it)), and a line in broken.go with the violation; also to the required names in mutants_test.go where the tests of
// the real scripts must catch it too. A mutant that finds nothing says that the rule is not needed, or that the model cannot
// see why.
//
// # What it leaves out
//
// Delayed publishing, publish dedupe, pausing, budgets of work, batches, the server's answers to failed commands, and the
// time between the look at a marker and the start of the handler. A handler that is deaf to its context may run beside a
// later run of its message; a suspect does not wait for it.
package model
