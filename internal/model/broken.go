package model

// broken lists the mutants, each with the violation it must produce.
var broken = []Model{
	{Mutants: reviving, Want: LiveLeaseTaken, allow: pausing, msgs: 1},
	{Mutants: reclaimerVis, Want: LiveLeaseTaken, allow: failing, kills: 1, vis: [nWork]int8{4, 2}},
	{Mutants: fromReceipt, Want: LiveLeaseTaken, allow: failing, kills: 1},
	{Mutants: noStartCheck, Want: StaleStart, allow: failing | pausing, kills: 1},
	{Mutants: repeatRegistration | overRegistering, Want: LiveLeaseTaken, allow: freshStart | pausing | strays, msgs: 1, incs: 3, calm: oneCalm},
	{Mutants: repeatRegistration, Want: LiveLeaseTaken, allow: freshStart | pausing | strays, msgs: 1, incs: 3, calm: oneCalm},
	{Mutants: sameName, Want: LiveLeaseTaken, allow: failing},
	{Mutants: noOwnerCheck, Want: TwoCopies, allow: failing | pausing, calm: oneCalm},
	{Mutants: ackFirst, Want: Lost, allow: failing},
	{Mutants: memberOid, Want: Lost, allow: failing},
	{Mutants: takenMovesNothing, Want: Stuck, allow: failing | seeking | farDue, calm: allCalm, askOne: 1},
	{Mutants: nacking, Want: StaleAck, allow: failing},
	{Mutants: releaseCosts, Want: Count, allow: failing},
	{Mutants: bareAckAfterLease, Want: StaleAck, allow: seeking, calm: oneCalm},
	{Mutants: noOwnList, Want: Stuck, allow: failing | losingReplies, askOne: 1},

	{Mutants: removeUnchecked, Want: Lost, allow: failing, kills: 1},
	{Mutants: idleForeign, Want: LiveLeaseTaken, allow: failing | losingHash, msgs: 1},
	{Mutants: noForeign, Want: Stuck, allow: failing | lateCalls, kills: 1, msgs: 1, askOne: 1},
	{Mutants: foreignRegistered, Want: LiveLeaseTaken, allow: failing | losingHash, msgs: 1, vis: [nWork]int8{4, 2}},
	{Mutants: holdOnGap, Want: Stuck, allow: gaps | stutter, kills: 1, msgs: 1, vis: longLease, grace: 1, askOne: 1},
	{Mutants: holdByConnection, Want: LiveOwnerTaken, allow: prompt | gaps | freezing, msgs: 1, vis: longLease, grace: 1},
	{Mutants: wideSweeps, Want: LiveOwnerTaken, allow: prompt | gaps | freezing, msgs: 1, grace: 1},

	{Mutants: noSuspects, Want: WrongDeadLetter, allow: poisoned, incs: 3, calm: allCalm},
	{Mutants: besideSuspect, Want: WrongDeadLetter, allow: poisoned | seededSuspect, incs: 3, calm: allCalm},
	{Mutants: unnamedReader, Want: Stuck, allow: poisoned | poisonedReads, incs: 3, calm: allCalm, askOne: 1},
	{Mutants: armReviving, Want: LiveLeaseTaken, allow: seededSuspect | pausing, msgs: 1, calm: oneCalm},

	{Mutants: floorStale, Want: TrimmedUndelivered, allow: failing | lateGroup | compacting, groups: 2},
	{Mutants: floorElse, Want: TrimmedUndelivered, allow: failing | settingID | compacting},
	{Mutants: compactMissing, Want: Lost, allow: failing | destroying | compacting, groups: 2},
	{Mutants: atDollar, Want: Lost, allow: failing | destroying},
	{Mutants: posIsLast, Want: Lost, allow: failing | destroying},
	{Mutants: seekPending, Want: LiveLeaseTaken, allow: failing | seeking},

	{Mutants: markerIfRemoved, Want: RunAgain, allow: deduping, msgs: 1, calm: oneCalm},
	{Mutants: markerAtRead, Want: RunAgain, allow: deduping, msgs: 1, calm: oneCalm},
	{Mutants: cutIsFailure, Want: Count, allow: quitting, calm: allCalm},
	{Mutants: lateResult, Want: Lost, allow: failing | overrunning | deduping, msgs: 1, calm: allCalm},
	{Mutants: deafKeeps, Want: Stuck, allow: overrunning, msgs: 1, calm: allCalm, askOne: 1},
	{Mutants: cancelledBlocks, Want: Stuck, allow: overrunning, msgs: 1, askOne: 16},
	{Mutants: bareAckAfterFailover, Want: Lost, allow: failing | failover, incs: 3, calm: allCalm},
	{Mutants: sameAfterFailover, Want: LiveLeaseTaken, allow: failover, incs: 3, calm: allCalm},
}

// Scenarios gives every scenario, those that must find nothing first.
func Scenarios() []*Model {
	var list []*Model
	for _, table := range [][]Model{ruled, broken} {
		for _, m := range table {
			list = append(list, m.withDefaults())
		}
	}
	return list
}
