package engine

import (
	"sync"
	"time"

	"github.com/xstreamq/xstreamq/internal/conn"
)

// sayEvery is how often one kind of trouble is logged.
const sayEvery = time.Minute

// trouble is what goes wrong at the moment, and when each kind was last logged.
type trouble struct {
	mu   sync.Mutex
	said map[string]time.Time
	down bool
	bad  map[string]error // by what was tried: what it failed with last, until it is well again
}

// say logs a line of its kind, once a minute at most.
func (s *Sub) say(kind, text string, args ...any) {
	s.trouble.mu.Lock()
	if s.trouble.said == nil {
		s.trouble.said = map[string]time.Time{}
	}
	now := time.Now()
	quiet := now.Sub(s.trouble.said[kind]) < sayEvery
	if !quiet {
		s.trouble.said[kind] = now
	}
	s.trouble.mu.Unlock()
	if !quiet {
		s.cfg.Log.Warn(text, append([]any{"stream", s.cfg.Keys.Name, "group", s.cfg.Keys.Group}, args...)...)
	}
}

// note takes an error of the server or the connection: logged once a minute and kind, told to the Connection hook once.
func (s *Sub) note(what string, err error) {
	if s.life.Err() != nil {
		return
	}
	kind := conn.Code(err)
	switch kind {
	case "":
		kind = "connection"
	case "READONLY", "MASTERDOWN": // demoted: when it is a master again, its ids may mean other entries
		s.fence()
	}
	s.say(what+" "+kind, "xstreamq: "+what+" failed; trying again", "err", err)
	s.trouble.mu.Lock()
	first := !s.trouble.down
	s.trouble.down = true
	if s.trouble.bad == nil {
		s.trouble.bad = map[string]error{}
	}
	s.trouble.bad[what] = err
	s.trouble.mu.Unlock()
	if first && s.cfg.Watch.Connection != nil {
		s.cfg.Watch.Connection(false, err)
	}
}

// recovered says that reading works again.
func (s *Sub) recovered() {
	s.trouble.mu.Lock()
	was := s.trouble.down
	s.trouble.down = false
	delete(s.trouble.bad, "read")
	s.trouble.mu.Unlock()
	if was && s.cfg.Watch.Connection != nil {
		s.cfg.Watch.Connection(true, nil)
	}
}

// well says that what was noted as failing did not fail, or is not tried any more.
func (s *Sub) well(what string) {
	s.trouble.mu.Lock()
	delete(s.trouble.bad, what)
	s.trouble.mu.Unlock()
}
