package dash

import (
	"encoding/base64"
	"errors"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/xstreamq/xstreamq"
)

// act asks whether it may, does it, and tells the audit.
func (h *Handler) act(r *http.Request, a Action, do func() error) error {
	err := h.authorize(r, a)
	if err == nil {
		err = do()
		h.shared.forget()
	}
	h.told(r, a, err)
	return err
}

type pauseJSON struct {
	Stream string `json:"stream"`
	Group  string `json:"group"`
	Reason string `json:"reason"`
	For    string `json:"for"` // a duration; "" = until resume
}

type pausedJSON struct {
	Paused bool `json:"paused"`
}

func (h *Handler) postPause(w http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	var in pauseJSON
	if err := readBody(w, r, &in); err != nil {
		return nil, err
	}
	var d time.Duration
	if in.For != "" {
		var err error
		if d, err = time.ParseDuration(in.For); err != nil || d < time.Millisecond || d > mostPause {
			return nil, badRequest("for is %q: it must be a duration such as 10m, of 1ms to ten years", short(in.For))
		}
	}
	if len(in.Reason) > mostText || !utf8.ValidString(in.Reason) {
		return nil, badRequest("the reason has %d bytes, at most %d are allowed", len(in.Reason), mostText)
	}
	return pausedJSON{true}, h.act(r, Action{Verb: verb, Stream: in.Stream, Group: in.Group}, func() error {
		return h.admin.Group(in.Stream, in.Group).Pause(r.Context(), in.Reason, d)
	})
}

type groupJSON struct {
	Stream string `json:"stream"`
	Group  string `json:"group"`
}

func (h *Handler) postResume(w http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	var in groupJSON
	if err := readBody(w, r, &in); err != nil {
		return nil, err
	}
	return pausedJSON{false}, h.act(r, Action{Verb: verb, Stream: in.Stream, Group: in.Group}, func() error {
		return h.admin.Group(in.Stream, in.Group).Resume(r.Context())
	})
}

type cancelJSON struct {
	Stream string `json:"stream"`
	ID     string `json:"id"`
}

type cancelledJSON struct {
	Cancelled bool `json:"cancelled"`
}

func (h *Handler) postCancel(w http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	var in cancelJSON
	if err := readBody(w, r, &in); err != nil {
		return nil, err
	}
	return cancelledJSON{true}, h.act(r, Action{Verb: verb, Stream: in.Stream, IDs: []string{in.ID}}, func() error {
		return h.admin.Stream(in.Stream).CancelDelayed(r.Context(), in.ID)
	})
}

// bulkJSON is redrive and purge: of the ids given, or, in the background, of all that the filter takes.
type bulkJSON struct {
	Stream   string     `json:"stream"`
	Group    string     `json:"group"`
	IDs      []string   `json:"ids"` // entry ids
	Filter   filterJSON `json:"filter"`
	Rate     float64    `json:"rate"` // a second; 0 = no limit
	Limit    int        `json:"limit"`
	DryRun   bool       `json:"dry_run"`
	ToStream bool       `json:"to_stream"`
}

type redrivenJSON struct {
	Redriven     int      `json:"redriven"`
	Unredrivable []string `json:"unredrivable"`
	Remaining    int      `json:"remaining"`
}

type purgedJSON struct {
	Purged    int `json:"purged"`
	Remaining int `json:"remaining"`
}

func (h *Handler) postBulk(w http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	var in bulkJSON
	if err := readBody(w, r, &in); err != nil {
		return nil, err
	}
	if len(in.IDs) > mostIDs {
		return nil, badRequest("%d ids are given, at most %d are allowed", len(in.IDs), mostIDs)
	}
	if in.Rate != 0 && !(in.Rate >= 0.001 && in.Rate <= 1e6) || in.Limit < 0 {
		return nil, badRequest("the rate must be 0 (no limit), or 0.001 to 1,000,000 a second, the limit 0 or more")
	}
	if in.ToStream && verb == VerbPurge {
		return nil, badRequest("to_stream is for redrive")
	}
	f, err := h.filter(r, in.Filter)
	if err != nil {
		return nil, err
	}
	a := Action{Verb: verb, Stream: in.Stream, Group: in.Group, IDs: in.IDs}
	if in.IDs != nil {
		f.EntryIDs = in.IDs
		return h.bulkNow(r, a, f, in)
	}
	a.Filter = &f
	var t taskJSON
	err = h.act(r, a, func() (err error) {
		t, err = h.runTask(r, a, in, f)
		return err
	})
	return struct {
		Task taskJSON `json:"task"`
	}{t}, err
}

// bulkNow handles the few that are named while the request waits. Those that are gone count as 0.
func (h *Handler) bulkNow(r *http.Request, a Action, f xstreamq.Filter, in bulkJSON) (any, error) {
	g := h.admin.Group(a.Stream, a.Group)
	var res xstreamq.BulkResult
	a.Result = &res
	err := h.act(r, a, func() (err error) {
		b := xstreamq.Bulk{ToStream: in.ToStream, DryRun: in.DryRun, Limit: in.Limit, Rate: in.Rate}
		if a.Verb == VerbPurge {
			res, err = g.PurgeAll(r.Context(), f, b)
		} else {
			res, err = g.RedriveAll(r.Context(), f, b)
		}
		return err
	})
	if a.Verb == VerbPurge {
		return purgedJSON{res.Done, res.Remaining}, err
	}
	if res.Unredrivable == nil {
		res.Unredrivable = []string{}
	}
	return redrivenJSON{res.Done, res.Unredrivable, res.Remaining}, err
}

type editJSON struct {
	Stream     string  `json:"stream"`
	Group      string  `json:"group"`
	ID         string  `json:"id"` // entry id
	Body       *string `json:"body_text"`
	BodyBase64 *string `json:"body_base64"`
	ToStream   bool    `json:"to_stream"`
}

var errRedacted = &statusError{
	http.StatusConflict, codeRefused, errors.New("the body is redacted here, so it cannot be edited here"), "xstreamq dlq redrive STREAM GROUP ID --edit",
}

func (h *Handler) postEdit(w http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	var in editJSON
	if err := readBody(w, r, &in); err != nil {
		return nil, err
	}
	body := []byte{}
	switch {
	case in.Body != nil && in.BodyBase64 == nil:
		body = append(body, *in.Body...)
	case in.Body == nil && in.BodyBase64 != nil:
		var err error
		if body, err = base64.StdEncoding.DecodeString(*in.BodyBase64); err != nil {
			return nil, badRequest("body_base64: %v", err)
		}
	default:
		return nil, badRequest("one of body_text and body_base64 is needed")
	}
	var newID string
	err := h.act(r, Action{Verb: verb, Stream: in.Stream, Group: in.Group, IDs: []string{in.ID}}, func() error {
		if h.cfg.Redact != nil {
			d, err := h.findDead(r.Context(), in.Stream, in.Group, in.ID)
			if err != nil {
				return err
			}
			if _, redacted := h.shown(r, d.Record, d.Group, d.Error); redacted {
				return errRedacted
			}
		}
		var err error
		newID, err = h.admin.Group(in.Stream, in.Group).Redrive(r.Context(), in.ID, xstreamq.RedriveOptions{Body: body, ToStream: in.ToStream})
		return err
	})
	return struct {
		Redriven int    `json:"redriven"`
		EntryID  string `json:"entry_id"` // where it went
	}{1, newID}, err
}

func (h *Handler) postCompact(w http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	var in struct {
		Stream string `json:"stream"`
	}
	if err := readBody(w, r, &in); err != nil {
		return nil, err
	}
	var c xstreamq.Compaction
	err := h.act(r, Action{Verb: verb, Stream: in.Stream}, func() (err error) {
		c, err = h.admin.Stream(in.Stream).Compact(r.Context(), false)
		return err
	})
	return compaction(c), err
}

func (h *Handler) postCancelTask(w http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	var in struct {
		ID string `json:"id"`
	}
	if err := readBody(w, r, &in); err != nil {
		return nil, err
	}
	t, err := h.tasks.get(in.ID) // whose one that is gone was is not known: it is asked for without
	return cancelledJSON{true}, h.act(r, Action{Verb: verb, Stream: t.Stream, Group: t.Group, IDs: []string{in.ID}, Task: in.ID}, func() error {
		if err != nil {
			return err
		}
		return h.tasks.stop(in.ID)
	})
}
