package dash

import (
	"context"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

// shared keeps answers for a moment: what a group's page reads again while it is open is asked of Redis once, however many
// tabs show it.
type shared struct {
	ctx      context.Context //nolint:containedctx // the handler's life: an answer is for all who wait
	interval time.Duration
	mu       sync.Mutex
	answers  map[string]*sharedAnswer
}

type sharedAnswer struct {
	ready chan struct{} // closed when the rest is there
	value any
	err   error
}

// sharedMost is how many answers are kept; a page of large bodies may be among them.
const sharedMost = 200

func newShared(ctx context.Context, interval time.Duration) *shared {
	return &shared{ctx: ctx, interval: interval, answers: map[string]*sharedAnswer{}}
}

// forget makes the next question a new one: something was changed.
func (s *shared) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.answers)
}

// once asks, or gives the answer of a moment ago. One that took long is kept for longer: as the sampler's, questions of one
// kind take a tenth of the time at most. A failure is not kept.
func once[T any](ctx context.Context, s *shared, key string, ask func(context.Context) (T, error)) (T, error) {
	a := s.answer(key, func(ctx context.Context) (any, error) { return ask(ctx) })
	var none T
	select {
	case <-a.ready:
	case <-ctx.Done():
		return none, ctx.Err()
	case <-s.ctx.Done():
		return none, xstreamq.ErrClosed
	}
	v, _ := a.value.(T) // of this key it is never another type
	return v, a.err
}

func (s *shared) answer(key string, ask func(context.Context) (any, error)) *sharedAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.answers[key]; a != nil {
		return a
	}
	a := &sharedAnswer{ready: make(chan struct{})}
	if len(s.answers) < sharedMost {
		s.answers[key] = a
	}
	go func() {
		ctx, cancel := context.WithTimeout(s.ctx, callTimeout)
		defer cancel()
		began := time.Now()
		a.value, a.err = ask(ctx)
		close(a.ready)
		if a.err != nil {
			s.drop(key, a)
			return
		}
		time.AfterFunc(max(s.interval, 9*time.Since(began)), func() { s.drop(key, a) })
	}()
	return a
}

func (s *shared) drop(key string, a *sharedAnswer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers[key] == a {
		delete(s.answers, key)
	}
}
