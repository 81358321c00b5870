package dash

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
)

// snapshotJSON is a snapshot on the wire.
type snapshotJSON struct {
	At      string    `json:"at"`
	TookMS  int64     `json:"took_ms"`
	Error   string    `json:"error"`       // "" when Redis answered
	Since   *string   `json:"error_since"` // since when it does not
	Groups  []row     `json:"groups"`
	History [][]point `json:"history,omitempty"` // beside groups, when it was asked for
}

func (s *snapshot) json(rows []row) snapshotJSON {
	if rows == nil {
		rows = s.Rows
	}
	if rows == nil {
		rows = []row{}
	}
	j := snapshotJSON{At: stamp(s.At), TookMS: s.Took.Milliseconds(), Groups: rows, Since: stampPtr(s.ErrSince)}
	if s.Err != nil {
		j.Error, _, _ = strings.Cut(s.Err.Error(), "\n")
	}
	return j
}

func mustEncode(v any) []byte {
	b, err := encode(v)
	if err != nil { // numbers and strings always encode
		panic(err)
	}
	return b
}

// of are the rows of one stream, or of one group of it.
func (s *snapshot) of(stream, group string) []row {
	rows := []row{}
	for _, r := range s.Rows {
		if (stream == "" || r.Stream == stream) && (group == "" || r.Group == group) {
			rows = append(rows, r)
		}
	}
	return rows
}

// keepAlive is how often a stream says something, so that proxies leave it open and ends are noticed.
const keepAlive = 20 * time.Second

// live is the stream of samples, as server-sent events: all groups, or those of a stream or group.
func (h *Handler) live(w http.ResponseWriter, r *http.Request, a Action) error {
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // a server's WriteTimeout is for answers that end
	leave := h.sampler.join()
	defer leave()
	head := w.Header()
	head.Set("Content-Type", "text/event-stream")
	head.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write([]byte("retry: 2000\n\n")); err != nil {
		return nil
	}
	if out.Flush() != nil { // a writer that cannot: the page falls back to polling when nothing comes
		return nil
	}
	var snap *snapshot
	for {
		ctx, cancel := context.WithTimeout(r.Context(), keepAlive)
		next, err := h.sampler.next(ctx, snap)
		cancel()
		if r.Context().Err() != nil || h.ctx.Err() != nil {
			return nil
		}
		_ = out.SetWriteDeadline(time.Now().Add(callTimeout)) // a reader that does not read
		if err != nil {
			_, err = w.Write([]byte(": still here\n\n"))
		} else {
			snap = next
			b := snap.encoded
			if a.Stream != "" {
				b = func() []byte { return mustEncode(snap.json(snap.of(a.Stream, a.Group))) }
			}
			_, err = w.Write(append(append([]byte("event: sample\ndata: "), b()...), '\n', '\n'))
		}
		if err != nil || out.Flush() != nil {
			return nil
		}
	}
}

// list is one snapshot with history: what a page begins with, and what it polls where streams do not come through.
func (h *Handler) list(r *http.Request, a Action, points int) (snapshotJSON, error) {
	defer h.sampler.join()()
	snap, err := h.sampler.current(r.Context())
	if err != nil {
		return snapshotJSON{}, err
	}
	j := snap.json(snap.of(a.Stream, a.Group))
	if points > 0 {
		j.History = make([][]point, len(j.Groups))
		for i, g := range j.Groups {
			j.History[i] = h.sampler.points(xstreamq.GroupRef{Stream: g.Stream, Group: g.Group}, points)
		}
	}
	return j, nil
}
