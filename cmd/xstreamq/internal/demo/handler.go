package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xstreamq/xstreamq"
)

const (
	visibility     = 3 * time.Second
	handlerTimeout = time.Hour
)

// plan says how the handler treats order n: the ledger knows beforehand what must happen.
type kind int

const (
	smooth   kind = iota
	flaky         // fails on its first attempt
	stubborn      // fails on its first two
	expired       // fails until the handler is mended
)

func plan(n int) kind {
	switch {
	case n%25 == 13:
		return expired
	case n%12 == 5:
		return flaky
	case n%12 == 9:
		return stubborn
	}
	return smooth
}

func (k kind) card() string {
	if k == expired {
		return "expired"
	}
	return "valid"
}

// failures is how many attempts of it fail before the handler is mended.
func (k kind) failures() int {
	switch k {
	case flaky:
		return 1
	case stubborn:
		return 2
	case expired:
		return maxRetries + 1
	}
	return 0
}

func (d *demo) handle(ctx context.Context, m *xstreamq.Message[Order]) error {
	if err := sleep(ctx, 20*time.Millisecond); err != nil {
		return err
	}
	k := plan(m.Body.Number)
	switch {
	case k == expired:
		if d.ledger.fixed() {
			return nil
		}
		return fmt.Errorf("order %d: card expired", m.Body.Number)
	case m.Attempt <= k.failures():
		return errors.New("bank does not answer")
	}
	return nil
}

func (d *demo) hooks() xstreamq.Hooks {
	return xstreamq.Hooks{
		HandleStart: func(ctx context.Context, m *xstreamq.Delivery) context.Context {
			if m.Lost > 0 {
				d.ledger.recovered(m.ID)
			}
			return ctx
		},
		HandleEnd: func(_ context.Context, m *xstreamq.Delivery, o xstreamq.Outcome, err error, _ time.Duration) {
			switch o {
			case xstreamq.OutcomeAcked:
				d.ledger.acked(m.ID)
			case xstreamq.OutcomeFailed:
				if d.ledger.retried(m.ID) == 1 {
					d.show.say("first failure: %v; back after %s, then twice that", err, backoff)
				}
			case xstreamq.OutcomeDead:
				if d.ledger.died(m.ID) == 1 {
					d.show.say("first dead letter, after %d attempts: %v", m.Attempt, err)
				}
			}
		},
	}
}
