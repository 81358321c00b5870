package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

type eventJSON struct {
	Event   string `json:"event"`
	ID      string `json:"id"`
	EntryID string `json:"entry_id"`
	Attempt int    `json:"attempt"`
	Error   string `json:"error"`
	MS      int64  `json:"ms"`
}

// events tells what became of each message: NDJSON on stdout with --json, else a line on stderr for what went wrong.
type events struct {
	a      *app
	sink   *lineSink
	closed func() // nobody reads stdout any more: stop working

	mu    sync.Mutex
	err   error
	tally map[string]int // by event
}

// summary is what became of all messages: "12 acked, 1 dead".
func (e *events) summary() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var parts []string
	for _, o := range []xstreamq.Outcome{
		xstreamq.OutcomeAcked, xstreamq.OutcomeFailed, xstreamq.OutcomeRejected, xstreamq.OutcomeDead, xstreamq.OutcomeReleased,
		xstreamq.OutcomeLost, xstreamq.OutcomeSkipped,
	} {
		if n := e.tally[string(o)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if len(parts) == 0 {
		return "no message came"
	}
	return strings.Join(parts, ", ")
}

func (e *events) hooks() xstreamq.Hooks {
	return xstreamq.Hooks{
		HandleEnd: func(_ context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, err error, took time.Duration) {
			e.tell(string(o), d, err, took)
		},
	}
}

func (e *events) tell(event string, d *xstreamq.Delivery, err error, took time.Duration) {
	if event == string(xstreamq.OutcomeSnoozed) {
		event = string(xstreamq.OutcomeReleased) // ours: handed back with nothing counted
	}
	e.mu.Lock()
	e.tally[event]++
	e.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	if e.a.json {
		b, jerr := encode(eventJSON{event, d.ID, d.EntryID, d.Attempt, text, took.Milliseconds()})
		if jerr == nil {
			e.write(append(b, '\n'))
		}
		return
	}
	if event != string(xstreamq.OutcomeAcked) && event != string(xstreamq.OutcomeSkipped) {
		if text != "" {
			text = ": " + text
		}
		e.sink.printf("xstreamq: %s %s, attempt %d%s", event, d.ID, d.Attempt, text)
	}
}

func (e *events) write(line []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	if e.err = e.a.writeJSON(line); e.err != nil {
		e.closed()
	}
}

// failed is why events could not be written; a closed pipe is none.
func (e *events) failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if errors.Is(e.err, errPipe) {
		return nil
	}
	return e.err
}
