package engine

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xstreamq/xstreamq/internal/commit"
	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/lua"
)

// Sub is one running subscription.
type Sub struct {
	cfg  Config
	base context.Context //nolint:containedctx // what handlers' contexts are made from: values, no end
	life context.Context //nolint:containedctx // ends when nothing of the subscription may go on
	end  context.CancelFunc

	draining chan struct{} // closed: reads no more
	ready    chan struct{} // closed: the group exists and is being read
	readOut  chan struct{} // closed: nothing is read any more
	done     chan struct{} // closed: ended; err says why
	wake     chan struct{} // the ticker looks at once
	jobs     chan lua.Look // what the sweeper shall do
	stopOnce sync.Once
	loops    sync.WaitGroup

	ticks, reads, sweeps, watches loop
	compacting                    atomic.Bool
	heard                         atomic.Int64 // ns after epoch of the last good read, 0 after a failed one
	clock                         atomic.Int64 // the server's, in ns, at epoch: by the last tick, and never ahead of it; 0 = not known yet
	awaited                       atomic.Int64 // ns after epoch by which the read under way is to be answered, 0 = none is

	settler *commit.Group[*settling]
	seen    *commit.Group[*seenCheck]
	slots   []*slot
	tidied  time.Time // the sweeper's: when the janitor last walked
	// The ticker's: the registry does not have the group yet.
	unlisted bool

	mu        sync.Mutex
	work      sync.Cond // idle workers: something to start
	room      sync.Cond // the reader: room, or a lease
	cond      sync.Cond // all others that wait; see wakeLocked
	current   *incarnation
	retired   []*incarnation // fenced, with handlers still running
	leftover  []*incarnation // void: what stands under their names is handed back
	buffer    buffer
	busy      int            // slots whose handler runs
	idle      int            // workers that wait
	spawned   int            // workers in all
	active    int            // started and not yet settled
	wanted    int            // deliveries that waiting calls of Receive would take
	pulled    map[*Run]*slot // handed over by Receive and not yet settled
	alone     *Run           // the suspect that runs
	holding   bool           // starts and reads are held back for the suspect at the front of the buffer
	held      string         // the suspect that starts were held back for last, by its stable id,
	heldMost  time.Duration  // and how long they are
	queued    bool           // it waits in the gate's queue; guarded by the gate's lock too
	lingering bool           // a timer is set for a batch that gathers
	paused    bool
	stopping  bool
	reading   *conn.Reader // the reader's connection, once made
	err       error
	speed     speed
	totals    totals
	trouble   trouble
}

// slot is one handler's place.
type slot struct {
	mu    sync.Mutex
	runs  []*Run // the first of them is the lead
	stuck bool   // its handler is deaf to its context, its message was failed
}

// New makes a subscription; Start starts it. base gives handlers their values.
func New(base context.Context, cfg Config) *Sub {
	cfg.Batch = max(1, cfg.Batch)
	s := &Sub{
		cfg: cfg, base: context.WithoutCancel(base), pulled: map[*Run]*slot{},
		draining: make(chan struct{}), ready: make(chan struct{}), readOut: make(chan struct{}), done: make(chan struct{}),
		wake: make(chan struct{}, 1), jobs: make(chan lua.Look, 1),
	}
	s.life, s.end = context.WithCancel(s.base)
	s.cond.L, s.work.L, s.room.L = &s.mu, &s.mu, &s.mu
	s.settler = commit.New(1024, s.flush)
	s.seen = commit.New(512, s.checkSeen)
	s.slots = make([]*slot, cfg.Concurrency)
	for i := range s.slots {
		s.slots[i] = &slot{}
	}
	return s
}

// Start starts the loops; it does not wait.
func (s *Sub) Start() {
	s.goLoop(&s.ticks, s.tickLoop)
	s.goLoop(&s.reads, s.readLoop)
	s.goLoop(&s.sweeps, s.sweepLoop)
	if s.cfg.HandlerTimeout > 0 {
		s.goLoop(&s.watches, s.watchdog)
	}
}

// Ready is closed once the group exists and is being read.
func (s *Sub) Ready() <-chan struct{} { return s.ready }

// Done is closed when the subscription has ended.
func (s *Sub) Done() <-chan struct{} { return s.done }

// Err says why it ended by itself; nil while it runs and after Stop.
func (s *Sub) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// fail ends the subscription for good: no waiting mends this.
func (s *Sub) fail(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.cfg.Log.Error("xstreamq: subscription ends", "stream", s.cfg.Keys.Name, "group", s.cfg.Keys.Group, "err", err)
	go func() {
		ctx, cancel := context.WithTimeout(s.base, time.Second)
		defer cancel()
		_ = s.Stop(ctx) // the reason is in err
	}()
}

// Stop hands back at once what never started, lets handlers drain until ctx ends, then cancels them with ErrShutdown and
// waits one second more. Errors: ErrDrainTimeout.
func (s *Sub) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		s.mu.Lock()
		s.stopping = true
		close(s.draining)
		back := s.buffer.takeAll()
		s.wakeLocked()
		s.mu.Unlock()
		s.handBack(back)
		s.releasePulled()
		s.loops.Go(s.interrupt)
	})
	var err error
	if !s.settledAll(ctx) {
		cut := s.cutHandlers()
		grace, cancel := context.WithTimeout(s.base, time.Second)
		defer cancel()
		s.settledAll(grace)
		s.mu.Lock()
		if cut > 0 || s.busy > 0 || s.active > 0 {
			err = ErrDrainTimeout
		}
		if s.busy > 0 {
			s.cfg.Log.Warn("xstreamq: handlers are deaf to their context and were left", "stream", s.cfg.Keys.Name,
				"group", s.cfg.Keys.Group, "handlers", s.busy)
		}
		s.mu.Unlock()
	}
	s.close()
	<-s.done
	return err
}

// settledAll waits until no handler runs and everything is settled; false when ctx ended first.
func (s *Sub) settledAll(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, s.broadcast)
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy > 0 || s.active > 0 || !isClosed(s.readOut) {
		if ctx.Err() != nil {
			return false
		}
		s.cond.Wait()
	}
	return true
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *Sub) broadcast() {
	s.mu.Lock()
	s.wakeLocked()
	s.mu.Unlock()
}

// wakeLocked wakes all who wait for something. It is not for each message: there may be very many idle workers.
func (s *Sub) wakeLocked() {
	s.work.Broadcast()
	s.room.Signal()
	s.cond.Broadcast()
}

// cutHandlers ends the contexts of handlers that still run, and counts them.
func (s *Sub) cutHandlers() (n int) {
	for _, sl := range s.slots {
		sl.mu.Lock()
		if len(sl.runs) > 0 {
			sl.runs[0].cut.Store(true)
			sl.runs[0].cancel(ErrShutdown)
			n++
		}
		sl.mu.Unlock()
	}
	return n
}

// close ends the loops and takes the consumer out when it holds nothing.
func (s *Sub) close() {
	s.mu.Lock()
	first := s.life.Err() == nil
	s.end()
	s.wakeLocked()
	s.mu.Unlock()
	if !first {
		return
	}
	s.dropReader()
	ended := make(chan struct{})
	go func() {
		s.loops.Wait()
		s.settler.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		s.lastTotals()
		s.leave()
	case <-time.After(closeGrace): // the server does not answer; what waits for it ends with the client's own timeouts
	}
	close(s.done)
}

// closeGrace is how long loops may take to end that wait for an answer of the server.
const closeGrace = time.Second

// dropReader cuts a read that could not be woken.
func (s *Sub) dropReader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading != nil {
		_ = s.reading.Close() // nothing is expected of it any more
	}
}

// leave removes the consumer's record. A handler that is still running keeps its lease for one more visibility timeout.
func (s *Sub) leave() {
	s.mu.Lock()
	names := make([]string, 0, 1+len(s.retired))
	for _, inc := range append(s.retired, s.current) {
		if inc != nil {
			names = append(names, inc.name)
		}
	}
	s.mu.Unlock()
	for _, name := range names {
		_ = s.bounded(s.base, time.Second, func(ctx context.Context) error {
			held, err := lua.Remove(ctx, s.cfg.Redis, s.cfg.Keys, name)
			if held > 0 {
				_, err = lua.Heartbeat(ctx, s.cfg.Redis, s.cfg.Keys, name)
			}
			return err
		}) // a name that stays is removed by the others' sweeps
	}
}

// bounded runs f and gives up waiting after d: a borrowed client may not heed a context's end on the wire.
func (s *Sub) bounded(parent context.Context, d time.Duration, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(parent, d)
	out := make(chan error, 1)
	go func() {
		defer cancel()
		out <- f(ctx)
	}()
	select {
	case err := <-out:
		return err
	case <-ctx.Done():
		select {
		case err := <-out:
			return err
		default:
		}
		return ctx.Err()
	}
}

// callTimeout bounds heartbeats and settlements: a quarter of the visibility timeout.
func (s *Sub) callTimeout() time.Duration { return max(s.cfg.Visibility/4, 100*time.Millisecond) }

// lose voids an incarnation: what it holds is another's. Its handlers are cancelled, what stands under its name is handed
// back by the next one.
func (s *Sub) lose(inc *incarnation, why string) {
	s.mu.Lock()
	if inc == nil || inc.void.Load() {
		s.mu.Unlock()
		return
	}
	inc.void.Store(true)
	if s.current == inc {
		s.current = nil
	}
	for i, x := range s.retired {
		if x == inc {
			s.retired = append(s.retired[:i], s.retired[i+1:]...)
			break
		}
	}
	s.leftover = append(s.leftover, inc)
	for _, r := range s.buffer.take(func(r *Run) bool { return r.inc == inc }) {
		inc.letGo(r)
	}
	s.wakeLocked()
	s.mu.Unlock()
	for _, sl := range s.places() {
		s.forsake(sl, inc)
	}
	s.say("lease", "xstreamq: lease lost; going on under a new consumer name", "consumer", inc.name, "why", why)
	s.nudge()
}

// places are where deliveries are that began: the slots of handlers, and one for each that was pulled.
func (s *Sub) places() []*slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.AppendSeq(slices.Clip(s.slots), maps.Values(s.pulled))
}

// forsake tells the handler in a slot that its lease is lost.
func (s *Sub) forsake(sl *slot, inc *incarnation) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if len(sl.runs) > 0 && sl.runs[0].inc == inc {
		lead := sl.runs[0]
		lead.cancel(ErrLeaseExpired)
		time.AfterFunc(s.cfg.Visibility/2, func() { s.abandon(sl, lead) })
	}
}

// abandon stops waiting for a handler that is deaf to the loss of its lease: nothing will be settled for it, and a suspect
// would keep all others from running.
func (s *Sub) abandon(sl *slot, lead *Run) {
	for _, r := range sl.giveUp(lead) {
		s.finish(&settling{run: r, v: Verdict{Verb: lua.Fail, Err: ErrLeaseExpired}, took: time.Since(r.started)}, lua.Settled{Status: lua.Lost})
	}
}

// giveUp takes from a slot what its handler has not settled.
func (sl *slot) giveUp(lead *Run) (deaf []*Run) {
	sl.mu.Lock()
	defer sl.mu.Unlock()
	if len(sl.runs) == 0 || sl.runs[0] != lead {
		return nil
	}
	for _, r := range sl.runs {
		if r.settled.CompareAndSwap(false, true) {
			deaf = append(deaf, r)
		}
	}
	sl.stuck = sl.stuck || len(deaf) > 0
	return deaf
}

// fence retires the current incarnation: another server process answers, so entry ids may mean other entries there. Its
// handlers go on and settle under its name, through the owner-checked script alone.
func (s *Sub) fence() {
	s.mu.Lock()
	inc := s.current
	if inc == nil {
		s.mu.Unlock()
		return
	}
	inc.fenced.Store(true)
	s.current = nil
	s.retired = append(s.retired, inc)
	back := s.buffer.take(func(r *Run) bool { return r.inc == inc })
	s.wakeLocked()
	s.mu.Unlock()
	s.handBack(back)
	s.nudge()
}

// nudge makes the ticker look at once.
func (s *Sub) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
