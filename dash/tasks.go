package dash

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/xstreamq/xstreamq"
)

// Bounds of the background tasks of one process.
const (
	tasksRunning = 4
	tasksKept    = 50  // that have ended
	idsShown     = 100 // of dead letters that cannot be redriven
)

// taskJSON is a background task: redrive or purge of all that match.
type taskJSON struct {
	ID           string     `json:"id"`
	Verb         Verb       `json:"verb"`
	Stream       string     `json:"stream"`
	Group        string     `json:"group"`
	Filter       filterJSON `json:"filter"`
	Rate         float64    `json:"rate"`    // asked for, a second; 0 = no limit
	DryRun       bool       `json:"dry_run"` // only counted
	ToStream     bool       `json:"to_stream"`
	State        string     `json:"state"` // running, done, cancelled, failed
	Done         int        `json:"done"`
	Matched      int        `json:"matched"` // found so far; all of them where the filter takes everything
	Remaining    *int       `json:"remaining"`
	Unredrivable []string   `json:"unredrivable"` // the first hundred
	Left         int        `json:"unredrivable_count"`
	Error        string     `json:"error"`
	StartedAt    string     `json:"started_at"`
	EndedAt      *string    `json:"ended_at"`
	PerSecond    float64    `json:"per_second"` // so far
}

type task struct {
	json   taskJSON
	began  time.Time
	cancel context.CancelFunc
}

type tasks struct {
	ctx  context.Context //nolint:containedctx // the handler's life
	mu   sync.Mutex
	all  []*task // oldest first
	runs sync.WaitGroup
}

func newTasks(ctx context.Context) *tasks { return &tasks{ctx: ctx} }

func (t *tasks) wait() { t.runs.Wait() }

// bulk is redrive or purge, bound to what it shall do.
type bulk func(ctx context.Context, progress func(done, matched int)) (xstreamq.BulkResult, error)

// start runs it in the background; ended is called with what came of it.
func (t *tasks) start(j taskJSON, run bulk, ended func(id string, res xstreamq.BulkResult, err error)) (taskJSON, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ctx.Err() != nil {
		return j, xstreamq.ErrClosed
	}
	running := 0
	for _, o := range t.all {
		if o.json.State == "running" {
			running++
		}
	}
	if running >= tasksRunning {
		return j, &statusError{http.StatusTooManyRequests, codeFailed, fmt.Errorf("%w: %d tasks run already", errBusy, running), "wait for one, or cancel it"}
	}
	ctx, cancel := context.WithCancel(t.ctx)
	k := &task{json: j, began: time.Now(), cancel: cancel}
	k.json.ID, k.json.State, k.json.StartedAt, k.json.Unredrivable = rand.Text(), "running", stamp(k.began), []string{}
	t.all = append(t.all, k)
	if over := len(t.all) - tasksKept - tasksRunning; over > 0 {
		t.all = slices.DeleteFunc(t.all, func(o *task) bool {
			drop := over > 0 && o.json.State != "running"
			if drop {
				over--
			}
			return drop
		})
	}
	t.runs.Go(func() {
		defer cancel()
		res, err := run(ctx, func(done, matched int) { t.progress(k, done, matched) })
		t.end(k, res, err, ctx.Err() != nil)
		ended(k.json.ID, res, err)
	})
	return k.json, nil
}

func (t *tasks) progress(k *task, done, matched int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k.json.Done, k.json.Matched = done, matched
	k.json.PerSecond = perSecond(done, time.Since(k.began))
}

func perSecond(n int, d time.Duration) float64 {
	return float64(int64(float64(n)/max(d.Seconds(), 0.001)*10)) / 10
}

func (t *tasks) end(k *task, res xstreamq.BulkResult, err error, cancelled bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	k.json.Done, k.json.State, k.json.EndedAt = res.Done, "done", stampPtr(now)
	k.json.Matched = max(k.json.Matched, res.Done)
	k.json.Left = len(res.Unredrivable)
	k.json.Unredrivable = append([]string{}, res.Unredrivable[:min(idsShown, len(res.Unredrivable))]...)
	k.json.PerSecond = perSecond(res.Done, now.Sub(k.began))
	switch {
	case err == nil:
		k.json.Remaining = &res.Remaining
	case cancelled:
		k.json.State = "cancelled"
	default:
		k.json.State, k.json.Error = "failed", err.Error()
	}
}

// list are the tasks, newest first; of one stream and group where they are given.
func (t *tasks) list(stream, group string) []taskJSON {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := []taskJSON{}
	for _, k := range slices.Backward(t.all) {
		if (stream == "" || k.json.Stream == stream) && (group == "" || k.json.Group == group) {
			out = append(out, k.json)
		}
	}
	return out
}

var errNoTask = fmt.Errorf("task: %w; only the process that runs it knows it", xstreamq.ErrNotFound)

func (t *tasks) get(id string) (taskJSON, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.all {
		if k.json.ID == id {
			return k.json, nil
		}
	}
	return taskJSON{}, errNoTask
}

// stop asks a task to end; one that has ended stays as it is.
func (t *tasks) stop(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.all {
		if k.json.ID == id {
			k.cancel()
			return nil
		}
	}
	return errNoTask
}

// runTask starts the bulk operation of a redrive or purge without ids.
func (h *Handler) runTask(r *http.Request, a Action, in bulkJSON, f xstreamq.Filter) (taskJSON, error) {
	if !in.Filter.All && in.Filter.empty() {
		return taskJSON{}, &statusError{http.StatusBadRequest, codeUsage, errors.New("neither ids, nor a filter, nor all"), `{"filter":{"all":true}} means all`}
	}
	f.All = true // said above
	j := taskJSON{Verb: a.Verb, Stream: a.Stream, Group: a.Group, Filter: in.Filter, Rate: in.Rate, DryRun: in.DryRun, ToStream: in.ToStream}
	g := h.admin.Group(a.Stream, a.Group)
	run := func(ctx context.Context, progress func(done, matched int)) (xstreamq.BulkResult, error) {
		b := xstreamq.Bulk{Rate: in.Rate, DryRun: in.DryRun, ToStream: in.ToStream, Limit: in.Limit, Progress: progress}
		if a.Verb == VerbPurge {
			return g.PurgeAll(ctx, f, b)
		}
		return g.RedriveAll(ctx, f, b)
	}
	// What outlives a request may not use its context, but Redact and Audit want to know who asked.
	asked := r.WithContext(context.WithoutCancel(r.Context()))
	return h.tasks.start(j, run, func(id string, res xstreamq.BulkResult, err error) {
		a.Task, a.Result = id, &res
		h.told(asked, a, err)
	})
}

func (f filterJSON) empty() bool {
	return f.Reason == "" && f.Error == "" && f.Body == "" && len(f.Header) == 0 && f.Before == "" && f.After == ""
}
