package model

// Shapes of scenarios. A calm worker is in order; late calls are executed after their client gave them up.
var (
	allCalm   = [nWork]bool{true, true}
	oneCalm   = [nWork]bool{false, true} // worker 1 is in order, worker 0 is not
	longLease = [nWork]int8{4, 4}        // a sweep each tick is a quarter of it
	lateCalls = apart | strays
)

// ruled lists what must find nothing.
var ruled = []Model{
	{Name: "kill, restart, fail, release", allow: failing, kills: 1},
	{Name: "SIGSTOP and SIGCONT", allow: pausing},
	{Name: "one message, SIGSTOP, kill, fail, visibilities 4 and 2", allow: failing | pausing, kills: 1, msgs: 1, vis: [nWork]int8{4, 2}},
	{Name: "one message, all calls late, SIGSTOP, kill, one worker in order", allow: failing | pausing | lateCalls, kills: 1, msgs: 1, incs: 3, calm: oneCalm},
	{Name: "two messages, all calls late, SIGSTOP, one worker in order", allow: pausing | lateCalls, incs: 3, calm: oneCalm},
	{Name: "one message, all calls late, SIGSTOP, two workers", allow: pausing | lateCalls, msgs: 1, incs: 3},
	{Name: "two messages, reads late, kill", allow: lateCalls, kills: 1},
	{Name: "replies lost, own list looked through", allow: failing | losingReplies},

	{Name: "registration of unknown outcome", allow: freshStart | pausing | strays, msgs: 1, incs: 3},
	{Name: "graceful stop, late reads", allow: failing | quitting | lateCalls, msgs: 1, incs: 3},
	{Name: "graceful stop cuts handlers, again and again", allow: failing | quitting, msgs: 1, incs: 4, calm: allCalm},
	{Name: "graceful stop, kill, two messages", allow: failing | quitting, kills: 1, calm: allCalm},
	{Name: "handlers past their time and deaf", allow: failing | overrunning, msgs: 1},
	{Name: "handlers past their time and deaf, kill, two messages", allow: overrunning, kills: 1, calm: allCalm},

	{Name: "server freezes, visibility 4 sweeps", allow: prompt | gaps | freezing, msgs: 1, vis: longLease, grace: 1},
	{Name: "server freezes, kill", allow: prompt | gaps | freezing, kills: 1, msgs: 1, vis: longLease, grace: 1},
	{Name: "server clock +6", allow: prompt | gaps | clockStepping, clockStep: 6, msgs: 1, vis: longLease, grace: 1},
	{Name: "server clock +3 (no gap seen)", allow: prompt | gaps | clockStepping, clockStep: 3, msgs: 1, vis: longLease, grace: 1},
	{Name: "server clock -6, kill", allow: prompt | gaps | clockStepping, clockStep: -6, kills: 1, msgs: 1, vis: longLease, grace: 1},
	{Name: "SIGSTOP, kill, gaps without a sweep", allow: pausing | gaps, kills: 1, msgs: 1},
	{Name: "stalls of over 3 sweeps once a visibility", allow: gaps | stutter, kills: 1, msgs: 1, vis: longLease, grace: 1},

	{Name: "two groups, one destroyed, compaction", allow: failing | destroying | compacting, groups: 2, calm: allCalm},
	{Name: "one group destroyed, kill, one message", allow: failing | destroying | compacting, kills: 1, msgs: 1},
	{Name: "one group destroyed, two messages", allow: failing | destroying | compacting, kills: 1, calm: allCalm},
	{Name: "two groups, one made late at the head, compaction", allow: lateGroup | compacting, groups: 2, kills: 1},
	{Name: "retry stream's group destroyed", allow: failing | retryDestroying, kills: 1, msgs: 1},
	{Name: "foreign trim of what is in flight", allow: failing | trimming, kills: 1},
	{Name: "redrive", allow: failing | redriving, kills: 1, incs: 3, calm: allCalm},
	{Name: "seek, compaction", allow: failing | seeking | compacting},
	{Name: "seek, a copy under the same member name due far off", allow: failing | seeking | farDue, calm: allCalm},

	{Name: "poison beside a suspect", allow: poisoned | seededSuspect, incs: 3, calm: allCalm},
	{Name: "poison and its neighbour", allow: poisoned, incs: 3, calm: allCalm},
	{Name: "poison that kills while it is read", allow: poisoned | poisonedReads, incs: 3, calm: allCalm},
	{Name: "suspect, SIGSTOP", allow: seededSuspect | pausing, kills: 1, msgs: 1, incs: 3},
	{Name: "workers hash lost", allow: failing | losingHash, msgs: 1},
	{Name: "workers hash lost, visibilities 4 and 2", allow: failing | losingHash, msgs: 1, vis: [nWork]int8{4, 2}},
	{Name: "unknown owner after late calls, kill", allow: failing | lateCalls, kills: 1, msgs: 1},

	{Name: "markers of successes, kill, fail", allow: failing | deduping, kills: 1},
	{Name: "markers of successes, SIGSTOP, one message", allow: failing | deduping | pausing, kills: 1, msgs: 1, vis: [nWork]int8{4, 2}},
	{Name: "markers of successes, seek", allow: failing | deduping | seeking | compacting},
	{Name: "markers of successes, redrive, handlers past their time", allow: failing | deduping | redriving | overrunning, msgs: 1, incs: 3, calm: allCalm},
	{Name: "markers of successes, a suspect", allow: deduping | seededSuspect | pausing, kills: 1, msgs: 1, incs: 3},

	{Name: "failover without the last writes, two messages", allow: failing | failover, incs: 3, calm: allCalm},
	{Name: "failover without the last writes, kill, one message", allow: failing | failover, kills: 1, msgs: 1, incs: 3},
	{Name: "failover without the last writes, sweeps judge the gap", allow: failover | gaps, kills: 1, msgs: 1, incs: 3, vis: longLease, grace: 1},
	{Name: "failover without the last writes, markers of successes", allow: failing | failover | deduping, incs: 3, calm: allCalm},
}
