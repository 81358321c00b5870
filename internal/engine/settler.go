package engine

import (
	"context"
	"time"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// settling is a delivery on its way out.
type settling struct {
	run     *Run
	v       Verdict
	took    time.Duration
	s       *lua.Settlement // nil: an ack, as long as it may go without the script
	tries   int             // sends without an answer so far
	unknown bool            // one of them may have run
}

// Bounds of one settle script's work.
const (
	settleEntries = 64
	settleBytes   = 256 << 10
)

// settle sends what became of a delivery on its way. The outcome is told when the server has answered.
func (s *Sub) settle(r *Run, v Verdict, took time.Duration) {
	r.settled.Store(true)
	it := &r.out
	*it = settling{run: r, v: v, took: took}
	failed := v.Verb == lua.Fail || v.Verb == lua.Snooze || v.Verb == lua.Bury && v.Counts
	switch {
	case r.inc.isVoid() && v.Verb != lua.Ack:
		s.finish(it, lua.Settled{Status: lua.Lost}) // another's now: an error is no failure, its release is not ours
		return
	case r.lead != nil && r.lead.cut.Load() && failed:
		it.s = &lua.Settlement{Verb: lua.Cut, Source: r.Source, EntryID: r.Msg.EntryID, Limit: maxCuts}
	case v.Verb != lua.Ack:
		it.s = s.settlement(r, v)
	}
	s.settler.Add(it)
}

func (s *Sub) settlement(r *Run, v Verdict) *lua.Settlement {
	out := &lua.Settlement{Verb: v.Verb, Source: r.Source, EntryID: r.Msg.EntryID, Delay: v.Delay, Limit: s.cfg.MaxRetries}
	if v.Err != nil {
		out.Error = wire.ErrorText(v.Err.Error())
	}
	switch v.Verb {
	case lua.Fail:
		s.say("handler", "xstreamq: a handler failed", "id", r.Msg.ID, "attempt", r.Msg.RC+1, "err", v.Err)
		if r.batched && !v.Own && out.Limit == 0 { // which of the batch it was shows when each has come back alone
			out.Limit = 1
		}
		if !v.Given {
			out.Delay = s.cfg.Backoff(r.Msg.RC+1, v.Err)
		}
	case lua.Bury:
		out.Reason, out.Counts = v.Reason, v.Counts
	case lua.Ack:
		if s.cfg.DedupeTTL > 0 && v.Reason != Skipped {
			out.Seen, out.TTL = r.marker, s.cfg.DedupeTTL
		}
	}
	return out
}

// flush sends a batch: first tries to ack what is of the main stream in one XACK, all else through the script that checks the
// owner.
func (s *Sub) flush(list []*settling) {
	if s.life.Err() != nil {
		for _, it := range list {
			s.finish(it, lua.Settled{Status: lua.Lost}) // the lease decides
		}
		return
	}
	byName := map[*incarnation][]*settling{}
	for _, it := range list {
		byName[it.run.inc] = append(byName[it.run.inc], it)
	}
	for inc, items := range byName {
		bare := !inc.fenced.Load() && s.sameServer() && inc.left(s.cfg.Visibility) > 0
		var plain, checked []*settling
		for _, it := range items {
			if it.s == nil && bare && it.run.Source == sourceMain {
				plain = append(plain, it)
				continue
			}
			if it.s == nil {
				it.s = s.settlement(it.run, it.v)
			}
			checked = append(checked, it)
		}
		s.ackPlain(plain)
		for len(checked) > 0 {
			n, bytes := 0, 0
			for n < len(checked) && n < settleEntries && (n == 0 || bytes < settleBytes) {
				bytes += len(checked[n].run.Msg.Body)
				n++
			}
			s.settleChecked(inc, checked[:n])
			checked = checked[n:]
		}
	}
}

// sameServer says that the reader has just heard the server that it knows. Only its reconnect finds out that another one
// answers; the pool's connections may have gone there before.
func (s *Sub) sameServer() bool {
	heard := s.heard.Load()
	return heard != 0 && time.Since(epoch)-time.Duration(heard) < conn.Deadline
}

// ackPlain sends one XACK, behind the markers of what it acks: who is given one of them again, the ack being lost, finds its
// marker. When a marker is refused, by a full memory above all, the script has to set it.
func (s *Sub) ackPlain(list []*settling) {
	if len(list) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.life, s.callTimeout())
	defer cancel()
	pipe := s.cfg.Redis.Pipeline()
	args := append(make([]any, 0, 3+len(list)), "xack", s.cfg.Keys.Main, s.cfg.Keys.Group)
	var ttl any = s.cfg.DedupeTTL.Milliseconds()
	for _, it := range list {
		args = append(args, &it.run.Msg.EntryID) // a pointer: a string would be copied to the heap first
		if s.cfg.DedupeTTL > 0 && it.v.Reason != Skipped {
			_ = pipe.Process(ctx, lua.NewOnce(ctx, "set", &it.run.marker, "1", "px", ttl)) // queued only
		}
	}
	ack := lua.NewOnce(ctx, args...)
	_ = pipe.Process(ctx, ack)
	if _, err := pipe.Exec(ctx); err != nil {
		for _, it := range list {
			it.unknown = !conn.Refused(ack.Err()) && !conn.NotRun(ack.Err()) // it may have been taken, whatever became of a marker
		}
		s.again(list, err)
		return
	}
	n, _ := ack.Int()
	out := lua.Settled{Status: lua.Acked}
	switch {
	case n == 0:
		out.Status = lua.Lost // a first attempt that removed nothing: it was not ours any more
	case n < len(list):
		s.say("ack", "xstreamq: some deliveries were acked by somebody else", "of", len(list), "missing", len(list)-n)
	}
	s.finishAll(list, func(int) lua.Settled { return out })
}

func (s *Sub) settleChecked(inc *incarnation, list []*settling) {
	batch := make([]lua.Settlement, len(list))
	for i, it := range list {
		batch[i] = *it.s
	}
	ctx, cancel := context.WithTimeout(s.life, s.callTimeout())
	defer cancel()
	res, err := lua.Settle(ctx, s.cfg.Redis, s.cfg.Keys, inc.name, s.cfg.MaxParked, batch)
	if err != nil {
		s.again(list, err)
		return
	}
	var done []*settling
	var how []lua.Settled
	var gone, refused []*settling
	var text string
	for i, it := range list {
		switch res[i].Status {
		case lua.Gone:
			it.s.Packed = wire.Pack(it.run.Msg.Fields)
			gone = append(gone, it)
		case lua.Failed:
			refused, text = append(refused, it), res[i].Detail
		default:
			if res[i].Status == lua.Lost && it.unknown {
				res[i].Status = unknownStatus // a try before may have done it
			}
			done, how = append(done, it), append(how, res[i])
		}
	}
	s.finishAll(done, func(i int) lua.Settled { return how[i] })
	if len(gone) > 0 {
		s.settler.Add(gone...)
	}
	if len(refused) > 0 {
		s.again(refused, conn.Said(text))
	}
}

// unknownStatus is a repeated settlement that found nothing: whether an earlier try or somebody else ended it is not known.
const unknownStatus = "unknown"

// again repeats settlements after a pause, until the server answers or the subscription ends: entry ids are new with every
// move, so a late one changes nothing.
func (s *Sub) again(list []*settling, err error) {
	if conn.Code(err) == "NOGROUP" { // void: the group is gone, and with it what was pending
		s.lose(list[0].run.inc, "group gone")
		s.finishAll(list, func(int) lua.Settled { return lua.Settled{Status: lua.Lost} })
		return
	}
	s.note("settle", err)
	try := list[0].tries
	for _, it := range list {
		it.tries++
		if it.s == nil {
			it.s = s.settlement(it.run, it.v)
		}
		it.unknown = it.unknown || !conn.Refused(err) && !conn.NotRun(err)
	}
	kept := append([]*settling(nil), list...)
	time.AfterFunc(commit.Backoff(try), func() { s.settler.Add(kept...) })
}

func (s *Sub) finish(it *settling, how lua.Settled) {
	s.finishAll([]*settling{it}, func(int) lua.Settled { return how })
}

// finishAll takes settled deliveries off the books and tells what became of them.
func (s *Sub) finishAll(list []*settling, how func(i int) lua.Settled) {
	s.mu.Lock()
	all := s.stopping // else nothing that starts or waits may have changed, but the reader's room
	for _, it := range list {
		r := it.run
		r.inc.letGo(r)
		delete(s.pulled, r)
		if s.alone == r {
			s.alone, all = nil, true
		}
	}
	if s.active -= len(list); s.active == 0 && s.holding {
		all = true
	}
	s.well("settle")
	if all {
		s.wakeLocked()
	} else {
		s.room.Signal()
	}
	s.mu.Unlock()
	for i, it := range list {
		s.tell(it, how(i))
	}
}

func (s *Sub) tell(it *settling, how lua.Settled) {
	w := s.cfg.Watch
	e := End{Err: it.v.Err, Took: it.took}
	switch how.Status {
	case lua.Lost:
		e.Outcome = LostIt
		if w.LeaseLost != nil {
			w.LeaseLost(it.run)
		}
	case lua.Dead:
		e.Outcome = Dead
		if how.Reason == "rejected" {
			e.Outcome = Rejected
		}
		if w.Buried != nil {
			w.Buried(s.base, how.DeadID)
		}
	case lua.Parked:
		e.Outcome = Failed
		if it.v.Verb == lua.Snooze {
			e.Outcome = Snoozed
		}
	case lua.Released:
		e.Outcome = Released
	default:
		e.Outcome = outcomeOf(it.v)
	}
	s.totals.count(e.Outcome, it.v)
	if w.Ended != nil {
		w.Ended(it.run, e)
	}
	if it.run.answer != nil {
		it.run.answer <- e
	}
}

// outcomeOf is what the handler said, for settlements whose repetition found them done.
func outcomeOf(v Verdict) string {
	switch v.Verb {
	case lua.Ack:
		if v.Reason == Skipped {
			return Skipped
		}
		return Acked
	case lua.Fail:
		return Failed
	case lua.Snooze:
		return Snoozed
	case lua.Bury:
		return Rejected
	}
	return Released
}
