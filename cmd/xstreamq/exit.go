package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
)

// Exit codes, a public contract.
const (
	exitOK          = 0
	exitFailed      = 1 // it failed, or was not found
	exitUsage       = 2
	exitRefused     = 3 // at the prompt
	exitUnreachable = 4 // the server can't be reached, or refuses the login
)

// usageError is a command line that cannot be meant so.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{err: fmt.Errorf(format, args...)} }

// hinted adds what to try next to an error.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

// unreachable marks an error of a server that does not answer, where the error itself leaves that open.
type unreachable struct{ error }

func (e *unreachable) Unwrap() error { return e.error }

var errRefused = errors.New("refused, nothing was done")

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var usage *usageError
	var away *unreachable
	var end *silent
	switch {
	case err == nil, errors.Is(err, errPipe):
		return exitOK
	case errors.Is(err, errRefused):
		return exitRefused
	case errors.As(err, &usage), errors.Is(err, xstreamq.ErrInvalidName), errors.Is(err, xstreamq.ErrInvalidOption),
		errors.Is(err, xstreamq.ErrNoFilter):
		return exitUsage
	case errors.As(err, &end):
		return end.code
	case errors.As(err, &away):
		return exitUnreachable
	case refusal(err) != "":
		return exitFailed
	case errors.Is(err, xstreamq.ErrUncertain): // also wraps a deadline, but the server may well have been reached
		return exitFailed
	case errors.Is(err, xstreamq.ErrUnavailable), errors.Is(err, xstreamq.ErrAuth), errors.Is(err, context.DeadlineExceeded):
		return exitUnreachable
	}
	return exitFailed
}

// refusal is the hint for a server that was reached, answered, and does not write. The library calls it unavailable.
func refusal(err error) string {
	var said redis.Error
	if !errors.As(err, &said) {
		return ""
	}
	switch text := said.Error(); {
	case strings.Contains(text, "OOM "):
		return "the server's memory is full: `xstreamq ls` and `xstreamq compact --dry-run` show what holds it"
	case strings.Contains(text, "READONLY "):
		return "this server is a replica, perhaps since a failover: --url of the master, or of the Sentinels or the cluster"
	case strings.Contains(text, "MISCONF "), strings.Contains(text, "NOREPLICAS "):
		return "the server refuses writes by its settings: `xstreamq doctor`"
	}
	return ""
}

func (a *app) hint(err error) string {
	var usage *usageError
	var h *hinted
	switch {
	case errors.As(err, &usage) && usage.hint != "":
		return usage.hint
	case errors.As(err, &h):
		return h.hint
	case refusal(err) != "":
		return refusal(err)
	case errors.Is(err, xstreamq.ErrUncertain):
		return "it may or may not be stored: look with `xstreamq peek`, or publish with --dedupe-id and repeat"
	case errors.Is(err, xstreamq.ErrAuth):
		return "the password goes in $XSTREAMQ_PASSWORD or --password-file, the user in --url redis://user@host:port"
	case exitCode(err) == exitUnreachable:
		return "check that the server runs, and --url or $XSTREAMQ_URL"
	case errors.Is(err, xstreamq.ErrNotFound):
		return "`xstreamq ls` lists the streams and groups there are"
	}
	return ""
}

// report prints err, if there is one to print, and returns the exit code.
func (a *app) report(err error, args []string) int {
	code := exitCode(err)
	var end *silent
	if err == nil || errors.Is(err, errPipe) || errors.As(err, &end) {
		return code
	}
	text := err.Error()
	if errors.Is(err, context.DeadlineExceeded) && code == exitUnreachable {
		text = fmt.Sprintf("no answer within %s: %s", a.timeout, text)
	}
	if u := safeURL(a.url); code == exitUnreachable && u != "" {
		text = u + ": " + text
	}
	text, hint := a.redact(text), a.redact(a.hint(err))
	if a.json || wantsJSON(args) {
		b, _ := json.Marshal(struct {
			Error string `json:"error"`
			Code  int    `json:"code"`
			Hint  string `json:"hint"`
		}{text, code, hint})
		fmt.Fprintf(a.err, "%s\n", b)
		return code
	}
	fmt.Fprintf(a.err, "Error: %s\n", escapeLines(text))
	if hint != "" {
		fmt.Fprintf(a.err, "Try: %s\n", escapeLines(hint))
	}
	return code
}

// wantsJSON looks at the bare arguments: a wrong flag before --json ends the parsing before it is seen.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "-j")
}
