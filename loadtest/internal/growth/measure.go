package growth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Options of a run.
type Options struct {
	Rounds   int
	Messages int           // of a point; fewer where bodies are large
	Only     []string      // of Names; empty: all
	Full     bool          // the largest points too
	Rest     time.Duration // of the workers, after the rounds
	Say      func(format string, args ...any)
}

const (
	stream    = "growth"
	group     = "g"
	mostBytes = 64 << 20 // of a round's bodies
	fewest    = 64       // messages of a round
	rested    = 2        // rests, of which the better one counts
	logged    = time.Millisecond
)

func streamOf(i int) string { return stream + strconv.Itoa(i) }

func body(size int) []byte { return bytes.Repeat([]byte("x"), size) }

// Run measures every axis. The points of one have a server each, all at the same time, and take turns: a machine that is
// slower for a while is so for all of them.
func Run(ctx context.Context, o Options) ([]Row, error) {
	var rows []Row
	for _, a := range axes {
		if len(o.Only) > 0 && !slices.Contains(o.Only, a.name) {
			continue
		}
		if o.Full && a.full > 0 {
			a.at = append(slices.Clip(a.at), a.full)
		}
		o.Say("%s", a.name)
		s, err := along(ctx, o, a)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", a.name, err)
		}
		rows = append(rows, a.judge(s))
	}
	return rows, nil
}

// samples of an axis: of each point the rounds' times of a message, in µs, and their longest commands.
type samples struct {
	publish, drain [][]float64
	longest        [][]command
	rest, control  []command // rest: of each point
}

// command is one that the server ran; none that took under a millisecond is known.
type command struct {
	took time.Duration
	what string
}

func along(ctx context.Context, o Options, a axis) (s samples, err error) {
	var points []*point
	defer func() {
		for _, p := range points {
			err = errors.Join(err, p.close())
		}
	}()
	for _, at := range a.at {
		l := a.load(at)
		p, err := prepare(ctx, l, min(o.Messages, max(fewest, mostBytes/l.size)))
		if p != nil {
			points = append(points, p)
		}
		if err != nil {
			return s, fmt.Errorf("%d: %w", at, err)
		}
	}
	s.publish, s.drain, s.longest = make([][]float64, len(points)), make([][]float64, len(points)), make([][]command, len(points))
	for range o.Rounds {
		c, err := points[0].control(ctx)
		if err != nil {
			return s, err
		}
		s.control = append(s.control, c)
		for i, p := range points {
			publish, drain, c, err := p.round(ctx)
			if err != nil {
				return s, fmt.Errorf("%d: %w", a.at[i], err)
			}
			o.Say("  %9d: publish %8.1f µs, drain %8.1f µs, longest %v %s", a.at[i], publish, drain, c.took, c.what)
			s.publish[i], s.drain[i], s.longest[i] = append(s.publish[i], publish), append(s.drain[i], drain), append(s.longest[i], c)
		}
	}
	rests := make([][]command, len(points))
	for range rested {
		if err := together(len(points), func(i int) error {
			c, err := points[i].rest(ctx, o.Rest)
			rests[i] = append(rests[i], c)
			return err
		}); err != nil {
			return s, err
		}
	}
	for i, p := range points {
		s.rest = append(s.rest, least(rests[i]))
		o.Say("  %9d: at rest, longest %v %s", a.at[i], s.rest[i].took, s.rest[i].what)
		if err := p.check(ctx); err != nil {
			return s, fmt.Errorf("%d: %w", a.at[i], err)
		}
	}
	return s, nil
}
