package xstreamq

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/engine"
)

// Sentinels: match with errors.Is; the text names the value and what to do.
var (
	// ErrInvalidName refuses a stream, a group, a prefix or a dedupe id.
	ErrInvalidName = errors.New("invalid name")
	// ErrInvalidOption refuses an option's value; the text names option, value and range.
	ErrInvalidOption = errors.New("invalid option")
	// ErrInvalidBody says that a body could not be encoded, decoded or validated.
	ErrInvalidBody = errors.New("invalid body")
	// ErrTooLarge says that a body is larger than the queue's MaxBody.
	ErrTooLarge = errors.New("body too large")
	// ErrClosed answers every call on a closed client, and on a zero one.
	ErrClosed = errors.New("client closed")
	// ErrAlreadySubscribed says that this client has a subscription of that stream and group.
	ErrAlreadySubscribed = errors.New("already subscribed")
	// ErrDrainTimeout says that handlers were cut when the drain timeout ended; their messages were handed back.
	ErrDrainTimeout = engine.ErrDrainTimeout
	// ErrUncertain says that a publish may or may not have been stored. Repeating it is safe with a DedupeID.
	ErrUncertain = errors.New("outcome unknown")
	// ErrNotReplicated says that a publish with WaitReplicas is stored, and that fewer replicas than asked for have confirmed it.
	// The result beside it has the id. Repeating it makes a second message, except with a DedupeID.
	ErrNotReplicated = errors.New("not replicated")
	// ErrUnavailable says that the server could not be reached, or refused for a reason that time may mend; nothing was stored.
	ErrUnavailable = errors.New("server unavailable")
	// ErrAuth says that the server refused the login (NOAUTH, WRONGPASS) or a command (NOPERM).
	ErrAuth = engine.ErrAuth
	// ErrUnsupportedServer says that the server lacks a command that all depends on: Redis before 6.2.
	ErrUnsupportedServer = engine.ErrUnsupported
	// ErrNotFound says that there is no such stream, group, message or dead letter.
	ErrNotFound = errors.New("not found")
	// ErrUnredrivable says that a dead letter has no body to redrive.
	ErrUnredrivable = errors.New("no body to redrive")
	// ErrNotEmpty says that a group or consumer still holds messages.
	ErrNotEmpty = errors.New("still holds messages")
	// ErrNoFilter refuses to purge everything without being told so: Filter.All.
	ErrNoFilter = errors.New("empty filter")
	// ErrTrimmed says that the history to seek to is no longer there.
	ErrTrimmed = errors.New("history no longer there")

	// ErrHandlerTimeout is the cause of a handler's context whose time is up; the run is a failed attempt.
	ErrHandlerTimeout = engine.ErrHandlerTimeout
	// ErrLeaseExpired is the cause of a handler's context when another consumer owns the message now. It is no failed
	// attempt. Extend and a late settlement return it too.
	ErrLeaseExpired = engine.ErrLeaseExpired
	// ErrShutdown is the cause of a handler's context when the drain timeout ended. A handler that returns then spends no
	// attempt: its message is handed back.
	ErrShutdown = engine.ErrShutdown
	// ErrGroupRemoved ends a subscription whose group was removed.
	ErrGroupRemoved = engine.ErrGroupRemoved
	// ErrFormat refuses data stored by a newer major version.
	ErrFormat = engine.ErrFormat
)

// BatchErrors maps the index of a message, from 0, to its error: from PublishBatch and Batch.Publish, and for the handlers of
// SubscribeBatch to return, where those that it does not name are done. An empty one counts as nil.
type BatchErrors map[int]error

// Error names the first messages that failed, in order.
func (e BatchErrors) Error() string {
	at := e.indexes()
	var b strings.Builder
	fmt.Fprintf(&b, "%d messages failed", len(at))
	for i, n := range at {
		if i == 3 {
			b.WriteString("; …")
			break
		}
		fmt.Fprintf(&b, "; %d: %v", n, e[n])
	}
	return b.String()
}

// Unwrap lists the errors in the order of their messages.
func (e BatchErrors) Unwrap() []error {
	out := make([]error, 0, len(e))
	for _, n := range e.indexes() {
		out = append(out, e[n])
	}
	return out
}

// Err is e, or a nil error when e is empty (a nil map in an error is not nil).
func (e BatchErrors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

func (e BatchErrors) indexes() []int {
	at := make([]int, 0, len(e))
	for n := range e {
		at = append(at, n)
	}
	slices.Sort(at)
	return at
}

// PanicError is a handler's panic, which counts as a failed attempt.
type PanicError struct {
	Value any    // what it panicked with
	Stack []byte // of the handler's goroutine, as debug.Stack gives it
}

// Error is the panic's value; Stack has the rest.
func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.Value) }

// serverError makes a server's or a connection's error one of ours. op says what was tried, and on what.
func serverError(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case conn.Auth(err):
		return fmt.Errorf("%s: %w: %w", op, ErrAuth, err)
	case conn.NotRun(err), conn.Code(err) == "OOM":
		return fmt.Errorf("%s: %w: %w", op, ErrUnavailable, err)
	case conn.Code(err) == "FORMAT":
		return fmt.Errorf("%s: %w: %w", op, ErrFormat, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}
