package dash

import (
	"context"
	"fmt"
	"net/http"

	"github.com/xstreamq/xstreamq"
)

// previewBytes of a body are shown in a list unless more are asked for.
const previewBytes = 256

// recordsPage reads one page of messages by read.
func (h *Handler) recordsPage(r *http.Request, verb Verb, group string, p *params,
	read func(context.Context, xstreamq.Page) (xstreamq.Records, error),
) (any, error) {
	page, form := p.page(), p.body(h.cfg.MaxBody, previewBytes)
	if _, err := h.allowed(r, verb, p, p.needed("stream"), group, ""); err != nil {
		return nil, err
	}
	recs, err := read(r.Context(), page)
	if err != nil {
		return nil, err
	}
	out := pageJSON[messageJSON]{Items: make([]messageJSON, len(recs.Items)), Next: recs.Next}
	for i, rec := range recs.Items {
		out.Items[i] = h.record(r, rec, group, form)
	}
	return out, nil
}

func (h *Handler) getPeek(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	return h.recordsPage(r, verb, "", p, h.admin.Stream(p.text("stream")).Peek)
}

func (h *Handler) getDelayed(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	return h.recordsPage(r, verb, "", p, h.admin.Stream(p.text("stream")).Delayed)
}

func (h *Handler) getRetrying(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	group := p.needed("group")
	stream := p.text("stream")
	return h.recordsPage(r, verb, group, p, func(ctx context.Context, page xstreamq.Page) (xstreamq.Records, error) {
		return once(ctx, h.shared, fmt.Sprintf("retrying %q %q %v", stream, group, page), func(ctx context.Context) (xstreamq.Records, error) {
			return h.admin.Group(stream, group).Retrying(ctx, page)
		})
	})
}

func (h *Handler) getMessage(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	form, id := p.body(h.cfg.MaxBody, h.cfg.MaxBody), p.needed("id")
	a, err := h.allowed(r, verb, p, p.needed("stream"), "", id)
	if err != nil {
		return nil, err
	}
	rec, err := h.admin.Stream(a.Stream).Get(r.Context(), id)
	if err != nil {
		return nil, err
	}
	return h.record(r, rec, "", form), nil
}

type whyJSON struct {
	State    string       `json:"state"`
	Detail   string       `json:"detail"`
	Ahead    *int64       `json:"ahead"`
	Consumer *string      `json:"consumer"`
	DueAt    *string      `json:"due_at"`
	Message  *messageJSON `json:"message"`
}

func (h *Handler) getWhy(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	form, id := p.body(h.cfg.MaxBody, h.cfg.MaxBody), p.needed("id")
	a, err := h.allowed(r, verb, p, p.needed("stream"), p.needed("group"), id)
	if err != nil {
		return nil, err
	}
	w, err := h.admin.Group(a.Stream, a.Group).Why(r.Context(), id)
	if err != nil {
		return nil, err
	}
	out := whyJSON{State: w.State, Ahead: w.Ahead, DueAt: stampPtr(w.Due)}
	if w.Consumer != "" {
		out.Consumer = &w.Consumer
	}
	rec := xstreamq.Record{ID: id, Stream: a.Stream}
	if w.Record != nil {
		rec = *w.Record
		m := h.record(r, rec, a.Group, form)
		out.Message = &m
	}
	m, _ := h.shown(r, rec, a.Group, w.Detail) // it may quote the last error
	out.Detail = m.Error
	return out, nil
}

func (h *Handler) getDead(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	page, form, fj := p.page(), p.body(h.cfg.MaxBody, previewBytes), p.filter()
	a, err := h.allowed(r, verb, p, p.needed("stream"), p.needed("group"), "")
	if err != nil {
		return nil, err
	}
	f, err := h.filter(r, fj)
	if err != nil {
		return nil, err
	}
	list, next, err := h.admin.Group(a.Stream, a.Group).DeadLetterPage(r.Context(), f, page)
	if err != nil {
		return nil, err
	}
	out := pageJSON[messageJSON]{Items: make([]messageJSON, len(list)), Next: next}
	for i, d := range list {
		out.Items[i] = h.deadLetter(r, d, form)
	}
	return out, nil
}

// findDead reads one dead letter.
func (h *Handler) findDead(ctx context.Context, stream, group, entryID string) (xstreamq.DeadLetter, error) {
	list, _, err := h.admin.Group(stream, group).DeadLetterPage(ctx, xstreamq.Filter{EntryIDs: []string{entryID}}, xstreamq.Page{Limit: 1})
	if err != nil {
		return xstreamq.DeadLetter{}, err
	}
	if len(list) == 0 {
		return xstreamq.DeadLetter{}, fmt.Errorf("dead letter %s of %s/%s: %w", entryID, stream, group, xstreamq.ErrNotFound)
	}
	return list[0], nil
}

func (h *Handler) getDeadOne(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	form, id := p.body(h.cfg.MaxBody, h.cfg.MaxBody), p.needed("id")
	a, err := h.allowed(r, verb, p, p.needed("stream"), p.needed("group"), id)
	if err != nil {
		return nil, err
	}
	d, err := h.findDead(r.Context(), a.Stream, a.Group, id)
	if err != nil {
		return nil, err
	}
	return h.deadLetter(r, d, form), nil
}

type compactionJSON struct {
	Removed  int64               `json:"removed"` // would be, by a compaction now
	Floor    string              `json:"floor"`
	HeldBy   []xstreamq.GroupRef `json:"held_by"`
	RetainMS *int64              `json:"retain_ms"` // history that stays; null = for ever
}

func compaction(c xstreamq.Compaction) compactionJSON {
	if c.HeldBy == nil {
		c.HeldBy = []xstreamq.GroupRef{}
	}
	return compactionJSON{Removed: c.Removed, Floor: c.Floor, HeldBy: c.HeldBy}
}

func (h *Handler) getCompaction(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	a, err := h.allowed(r, verb, p, p.needed("stream"), "", "")
	if err != nil {
		return nil, err
	}
	return once(r.Context(), h.shared, fmt.Sprintf("compaction %q", a.Stream), func(ctx context.Context) (out compactionJSON, err error) {
		s := h.admin.Stream(a.Stream)
		c, err := s.Compact(ctx, true)
		if err != nil {
			return out, err
		}
		out = compaction(c)
		retain, err := s.Retention(ctx)
		out.RetainMS = msPtr(retain)
		return out, err
	})
}

func (h *Handler) getTasks(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	p := query(r)
	id := p.text("id")
	a, err := h.allowed(r, verb, p, p.text("stream"), p.text("group"), id)
	if err != nil {
		return nil, err
	}
	if id != "" {
		return h.tasks.get(id)
	}
	return h.tasks.list(a.Stream, a.Group), nil
}
