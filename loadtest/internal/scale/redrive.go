package scale

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/loadtest/internal/proc"
)

// ChildEnv makes the program that is started again the operator who redrives: host:port and the rate.
const ChildEnv = "XSTREAMQ_SCALE_REDRIVE"

// Child redrives everything, and tells out after each batch how far it is.
func Child(spec string, out io.Writer) error {
	addr, text, _ := strings.Cut(spec, " ")
	rate, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	client, err := xstreamq.Open("redis://" + addr)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // nothing of it is left to lose
	start := time.Now()
	res, err := client.Admin().Group(stream, group).RedriveAll(context.Background(), xstreamq.Filter{}, xstreamq.Bulk{
		Rate:     rate,
		Progress: func(done, matched int) { _, _ = fmt.Fprintln(out, done, matched) }, // who reads may be gone
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "through", res.Done, time.Since(start).Milliseconds())
	return err
}

// Redriven is what became of a redrive that was killed and begun anew.
type Redriven struct {
	Dead, AtKill   int // as the killed one said last
	Left           int // dead letters when it was dead
	Rate, Held     float64
	Lost, Doubled  int
	WrongMatches   bool // progress did not know how many there are
	RateOff, Wrong bool
}

// Redrive redrives all dead letters in a process that is killed midway, then in another, and looks where each went.
func (w *World) Redrive(ctx context.Context, addr string, rate float64) (r Redriven, err error) {
	r = Redriven{Dead: w.Dead, Rate: rate}
	parked := func() (map[string]bool, error) {
		names, err := w.rdb.HKeys(ctx, prefix+".parked").Result()
		out := map[string]bool{}
		for _, n := range names {
			if strings.HasPrefix(n, "x/") {
				out[n] = true
			}
		}
		return out, err
	}
	first, lines, err := redriver(addr, rate)
	if err != nil {
		return r, err
	}
	for lines.Scan() {
		var done, matched int
		if _, err := fmt.Sscan(lines.Text(), &done, &matched); err != nil {
			return r, fmt.Errorf("scale: the redriving process says %q", lines.Text())
		}
		r.AtKill, r.WrongMatches = done, r.WrongMatches || matched != w.Dead
		if done >= w.Dead*2/5 {
			break
		}
	}
	if err := first.Kill(); err != nil {
		return r, err
	}
	left, err := w.rdb.XLen(ctx, prefix+".dlq").Result()
	if err != nil {
		return r, err
	}
	r.Left = int(left)
	second, lines, err := redriver(addr, rate)
	if err != nil {
		return r, err
	}
	done, ms := 0, 0
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "through "); ok {
			if _, err := fmt.Sscan(rest, &done, &ms); err != nil {
				return r, fmt.Errorf("scale: the redriving process says %q", lines.Text())
			}
		}
	}
	<-second.Done()
	if _, err := second.Ended(); err != nil {
		return r, fmt.Errorf("scale: the second redrive: %w", err)
	}
	r.Held = float64(done) / (float64(ms) / 1000)
	r.RateOff = math.Abs(r.Held-rate) > rate/10
	now, err := parked()
	if err != nil {
		return r, err
	}
	for i := range w.Dead {
		name := "x/" + strconv.FormatInt(w.died+int64(i), 10) + "-0"
		if !now[name] {
			r.Lost++
		}
		delete(now, name)
	}
	r.Doubled = len(now) // under a second name
	after, err := w.rdb.XLen(ctx, prefix+".dlq").Result()
	r.Wrong = after != 0 || done != r.Left || r.Left == 0 || r.Left > w.Dead-r.AtKill || r.Lost+r.Doubled > 0 || r.WrongMatches
	return r, err
}

func redriver(addr string, rate float64) (*proc.Process, *bufio.Scanner, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), ChildEnv+"="+addr+" "+strconv.FormatFloat(rate, 'f', -1, 64))
	cmd.Stderr = os.Stderr
	out, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	cmd.Stdout = in
	p, err := proc.Start(cmd)
	_ = in.Close() // the child has its own
	return p, bufio.NewScanner(out), err
}
