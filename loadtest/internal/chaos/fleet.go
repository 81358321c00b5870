package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/proc"
	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

// Death is a worker's end by SIGKILL.
type Death struct {
	Worker string
	At     int64 // when it was gone, in Unix nanoseconds
	Held   int64 // messages that stood under its name then; -1 = the server did not say
}

// fleet is the workers: slots, in each of which one process follows the other.
type fleet struct {
	longer  time.Duration   // the visibility of every second slot; 0 = that of spec
	intakes []worker.Intake // of the slots, in turn; none = that of spec
	self    string          // the program, which is a worker when it is told so
	dir     string
	spec    worker.Spec
	held    func(worker string) int64

	slots []*slot

	mu        sync.Mutex
	deaths    []Death
	born      map[string]int64
	gone      map[string]int64 // every worker that has ended, and when
	asleep    map[string][]ledger.Span
	trouble   []string // workers that ended by themselves, or did not end when asked
	undrained []undrained
	later     sync.WaitGroup
}

// undrained is a worker that was asked to end and could not settle all in its time: it needs the server for that.
type undrained struct {
	worker string
	ledger.Span
}

type slot struct {
	mu    sync.Mutex
	n     int
	gen   int
	name  string
	p     *proc.Process
	lease time.Duration
	slept int64 // since when it is stopped; 0 = it is not
	taken bool  // for so long that what it holds may be taken from it
}

func newFleet(self, dir string, n int, spec worker.Spec, held func(string) int64) *fleet {
	f := &fleet{self: self, dir: dir, spec: spec, held: held, born: map[string]int64{}, gone: map[string]int64{}, asleep: map[string][]ledger.Span{}}
	for i := range n {
		f.slots = append(f.slots, &slot{n: i})
	}
	return f
}

// start starts the slot's next process.
func (f *fleet) start(s *slot) error {
	s.gen++
	s.name, s.slept = fmt.Sprintf("%d.%d", s.n, s.gen), 0
	spec := f.spec
	spec.Name = s.name
	if f.longer > 0 && s.n%2 == 1 {
		spec.Visibility = f.longer
	}
	if len(f.intakes) > 0 {
		spec.Intake = f.intakes[s.n%len(f.intakes)]
	}
	s.lease = spec.Visibility
	spec.Ledger = filepath.Join(f.dir, "w-"+s.name+".log")
	text, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(f.dir, "w-"+s.name+".err"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the process has its own by then
	cmd := exec.Command(f.self, "worker", string(text))
	cmd.Stdout, cmd.Stderr = log, log
	f.mu.Lock()
	f.born[s.name] = time.Now().UnixNano()
	f.mu.Unlock()
	s.p, err = proc.Start(cmd)
	return err
}

func (f *fleet) startAll() error {
	for _, s := range f.slots {
		s.mu.Lock()
		err := f.start(s)
		s.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// over takes note that the slot's process has ended. Its lock is held.
func (f *fleet) over(s *slot) int64 {
	at, _ := s.p.Ended()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone[s.name] = at.UnixNano()
	if s.slept > 0 && s.taken {
		f.asleep[s.name] = append(f.asleep[s.name], ledger.Span{From: s.slept, To: at.UnixNano()})
	}
	return at.UnixNano()
}

func (f *fleet) complain(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trouble = append(f.trouble, fmt.Sprintf(format, args...))
}

// kill ends the slot's process without warning and starts the next.
func (f *fleet) kill(s *slot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.found(s) { // it had ended before
		return f.start(s)
	}
	if err := s.p.Kill(); err != nil {
		return err
	}
	d := Death{Worker: s.name, At: f.over(s), Held: -1}
	f.later.Go(func() {
		d.Held = f.held(d.Worker)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.deaths = append(f.deaths, d)
	})
	return f.start(s)
}

// found says that the slot's process has ended by itself. The slot's lock is held.
func (f *fleet) found(s *slot) bool {
	select {
	case <-s.p.Done():
		_, err := s.p.Ended()
		f.over(s)
		f.complain("worker %s ended by itself: %v", s.name, err)
		return true
	default:
		return false
	}
}

// sleep stops the slot's process for d, unless it is stopped already.
func (f *fleet) sleep(s *slot, d time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slept > 0 || f.found(s) {
		return nil
	}
	if err := s.p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	s.slept = time.Now().UnixNano()
	name := s.name
	s.taken = d > s.lease/2
	f.later.Go(func() {
		time.Sleep(d)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.name != name || s.slept == 0 {
			return // killed meanwhile
		}
		f.wake(s)
	})
	return nil
}

// wake ends a sleep. The slot's lock is held. What the process ran when it fell asleep may overlap with others' runs until it
// has noticed: a handler that ends at once tells the ledger before it can know.
func (f *fleet) wake(s *slot) {
	if err := s.p.Signal(syscall.SIGCONT); err != nil {
		f.complain("worker %s: %v", s.name, err)
	}
	if s.taken {
		f.mu.Lock()
		f.asleep[s.name] = append(f.asleep[s.name], ledger.Span{From: s.slept, To: time.Now().UnixNano()})
		f.mu.Unlock()
	}
	s.slept = 0
}

// deploy replaces processes, one after the other: the new one starts when the old one is asked to end.
func (f *fleet) deploy(slots []*slot, within time.Duration) error {
	for _, s := range slots {
		s.mu.Lock()
		old := &slot{n: s.n, name: s.name, p: s.p, slept: s.slept}
		if s.slept > 0 {
			f.wake(s)
			old.slept = 0
		}
		err := f.start(s)
		s.mu.Unlock()
		if err != nil {
			return err
		}
		f.end(old, within)
	}
	return nil
}

// end asks the process to end, and complains when it does not in time, or not well.
func (f *fleet) end(s *slot, within time.Duration) {
	if f.found(s) {
		return
	}
	asked := time.Now().UnixNano()
	late, err := s.p.Stop(within)
	if err != nil {
		f.complain("worker %s: %v", s.name, err)
		return
	}
	at := f.over(s)
	f.mu.Lock()
	young := at-f.born[s.name] < int64(time.Second) // asked before it could listen for it
	f.mu.Unlock()
	var exit *exec.ExitError
	if _, err := s.p.Ended(); late {
		f.complain("worker %s did not end within %v", s.name, within)
	} else if errors.As(err, &exit) && exit.ExitCode() == worker.Undrained {
		f.mu.Lock()
		f.undrained = append(f.undrained, undrained{s.name, ledger.Span{From: asked, To: at}})
		f.mu.Unlock()
	} else if err != nil && !young {
		f.complain("worker %s ended badly: %v", s.name, err)
	}
}

// endAll ends everything.
func (f *fleet) endAll(within time.Duration) {
	f.later.Wait()
	var all sync.WaitGroup
	for _, s := range f.slots {
		if s.p != nil {
			all.Go(func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				f.end(s, within)
			})
		}
	}
	all.Wait()
}

// used is the processor time that each worker's process has used so far.
func (f *fleet) used() map[string]time.Duration {
	out := map[string]time.Duration{}
	for _, s := range f.slots {
		s.mu.Lock()
		if d, ok := s.p.Used(); ok {
			out[s.name] = d
		}
		s.mu.Unlock()
	}
	return out
}
