package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// progress draws one line on a terminal's stderr, and nothing anywhere else.
type progress struct {
	w    io.Writer // nil: not a terminal
	verb string
	last time.Time
	now  func() time.Time
}

func (a *app) progress(verb string) *progress {
	p := &progress{verb: verb, now: time.Now}
	if a.errTTY && !a.json {
		p.w = a.err
	}
	return p
}

// update shows done of total; total 0 = not known.
func (p *progress) update(done, total int64) {
	now := p.now()
	if p.w == nil || now.Sub(p.last) < 100*time.Millisecond {
		return
	}
	p.last = now
	if total <= 0 {
		fmt.Fprintf(p.w, "\r%s %d\x1b[K", p.verb, done)
		return
	}
	const width = 30
	full := int(width * min(done, total) / total)
	fmt.Fprintf(p.w, "\r%s [%s%s] %d/%d\x1b[K", p.verb, strings.Repeat("#", full), strings.Repeat(".", width-full), done, total)
}

// clear takes the line away again, so that the result stands alone.
func (p *progress) clear() {
	if p.w != nil && !p.last.IsZero() {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
