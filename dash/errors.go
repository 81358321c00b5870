package dash

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/xstreamq/xstreamq"
)

// Codes of errors are those of the command line's exits.
const (
	codeFailed      = 1 // it failed, or was not found
	codeUsage       = 2
	codeRefused     = 3
	codeUnreachable = 4
)

// statusError is an error that says how it is answered.
type statusError struct {
	status int
	code   int
	err    error
	hint   string
}

func (e *statusError) Error() string { return e.err.Error() }
func (e *statusError) Unwrap() error { return e.err }

func badRequest(format string, args ...any) error {
	return &statusError{http.StatusBadRequest, codeUsage, fmt.Errorf("%w: %s", errBadRequest, fmt.Sprintf(format, args...)), ""}
}

// asStatus is the one place where errors become answers.
func asStatus(err error) *statusError {
	var s *statusError
	if errors.As(err, &s) {
		return s
	}
	s = &statusError{http.StatusInternalServerError, codeFailed, err, ""}
	switch {
	case errors.Is(err, xstreamq.ErrInvalidName), errors.Is(err, xstreamq.ErrInvalidOption), errors.Is(err, xstreamq.ErrNoFilter):
		s.status, s.code = http.StatusBadRequest, codeUsage
	case errors.Is(err, xstreamq.ErrNotFound):
		s.status = http.StatusNotFound
	case errors.Is(err, xstreamq.ErrNotEmpty), errors.Is(err, xstreamq.ErrUnredrivable):
		s.status = http.StatusConflict
	case errors.Is(err, xstreamq.ErrAuth):
		s.status, s.code, s.hint = http.StatusBadGateway, codeUnreachable, "Redis refuses the login or a command of this program"
	case errors.Is(err, xstreamq.ErrUnavailable), errors.Is(err, xstreamq.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		s.status, s.code, s.hint = http.StatusServiceUnavailable, codeUnreachable, "Redis does not answer; this page tries again by itself"
	}
	return s
}

type errorJSON struct {
	Error string `json:"error"`
	Code  int    `json:"code"`
	Hint  string `json:"hint"`
}

func (h *Handler) fail(w http.ResponseWriter, err error) {
	s := asStatus(err)
	writeJSON(w, s.status, errorJSON{s.Error(), s.code, s.hint})
}
