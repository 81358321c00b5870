package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
)

const unknown = "?" // a count that the server cannot tell; null in JSON

// parseTime reads RFC 3339, or a duration meaning that long ago.
func parseTime(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return time.Time{}, &usageError{
			err:  errors.New(flag + " " + strconv.Quote(s) + " is no time"),
			hint: flag + " 2026-01-31T15:04:05Z, or how long ago: " + flag + " 90m",
		}
	}
	return now.Add(-d), nil
}

// parseHeaders reads k=v flags.
func parseHeaders(kv []string) (map[string]string, error) {
	h := make(map[string]string, len(kv))
	for _, s := range kv {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, &usageError{err: errors.New("--header " + strconv.Quote(s) + " is not key=value"), hint: "--header tenant=acme"}
		}
		if _, twice := h[k]; twice {
			return nil, usagef("--header %s is given twice", k)
		}
		h[k] = v
	}
	return h, nil
}

// parsePosition reads --from.
func parsePosition(s string) (xstreamq.Position, error) {
	switch s {
	case "head":
		return xstreamq.Head, nil
	case "tail":
		return xstreamq.Tail, nil
	}
	return "", &usageError{err: errors.New("--from " + strconv.Quote(s) + " is neither head nor tail"), hint: "--from head"}
}

// parseFor reads a flag that says for how long; 0 is what leaving it out means.
func parseFor(flag string, d time.Duration, given bool) error {
	if given && d < time.Millisecond {
		return &usageError{err: fmt.Errorf("%s is %s: it must be at least 1ms", flag, d), hint: flag + " 10m"}
	}
	return nil
}

func count(n int64) string { return strconv.FormatInt(n, 10) }

func countPtr(n *int64) string {
	if n == nil {
		return unknown
	}
	return count(*n)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// when is a moment in a table: exact into a pipe, short on a terminal, where its distance is what one wants to know.
func (a *app) when(t time.Time) string {
	if t.IsZero() || !a.outTTY {
		return stamp(t)
	}
	return relative(t)
}

// relative is how far a moment is away.
func relative(t time.Time) string {
	if d := time.Until(t); d > 0 {
		return "in " + ago(d)
	}
	return ago(time.Since(t)) + " ago"
}

// ago is a rough age for people.
func ago(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	case d < 48*time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return count(int64(d.Round(time.Hour)/(24*time.Hour))) + "d"
}
