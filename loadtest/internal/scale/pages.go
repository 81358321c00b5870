package scale

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/xstreamq/xstreamq"
)

// MostHeap is what a process that serves the dashboard may hold with Tabs open tabs.
const (
	Tabs     = 50
	MostHeap = 64 << 20
)

// Admin is what a dashboard over the world asks.
func (w *World) Admin() *xstreamq.Admin { return w.client.Admin() }

// Pages are all pages of a dashboard that is about the large group: a name, and the query of its address.
func (w *World) Pages() [][2]string {
	at := func(page string, more ...string) string {
		q := url.Values{"page": {page}, "stream": {stream}, "group": {group}}
		for i := 0; i < len(more); i += 2 {
			q.Set(more[i], more[i+1])
		}
		return "?" + q.Encode()
	}
	died := strconv.FormatInt(w.died+int64(w.Dead/2), 10) + "-0"
	return [][2]string{
		{"overview", "?"},
		{"group", at("group")},
		{"messages", at("messages")},
		{"message, waiting", at("message", "id", w.id(w.Entries-1))},
		{"message, in flight", at("message", "id", w.id(w.Entries/2-1))},
		{"delayed", at("delayed")},
		{"dead letters", at("dead")},
		{"dead letters, filtered", at("dead", "error", "refused", "reason", "retries")},
		{"dead letters, none matches", at("dead", "error", "no such text")},
		{"dead letter", at("letter", "id", died)},
		{"tasks", "?page=tasks"},
		{"server", "?page=server"},
	}
}

// Page measures what a page asked the dashboard for, without the browser: that keeps the processors busy, and a command is
// longer while others have them. A page that the dashboard answers with what it has at hand has no commands.
func (w *World) Page(ctx context.Context, name string, asked []string) (Row, error) {
	row, err := w.measure(ctx, operation{name, func(ctx context.Context) error {
		for _, address := range asked {
			if err := get(ctx, address); err != nil {
				return err
			}
		}
		return nil
	}})
	if errors.Is(err, errNone) {
		err = nil
	}
	return row, err
}

func get(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("scale: %s: %s", address, res.Status)
	}
	return nil
}

// Watch opens the live streams of n tabs on a dashboard of this process, reads two samples of each, and returns the bytes of
// the heap that are in use then, all streams open.
func Watch(ctx context.Context, dashboard string, n int) (heap uint64, err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	client := &http.Client{Transport: &http.Transport{}}
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() { errs[i] = twoSamples(ctx, client, dashboard+"api/live") })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, nil
}

// twoSamples leaves the stream open, until its context ends.
func twoSamples(ctx context.Context, client *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = res.Body.Close() }) // its context has ended: nothing is left to say
	lines, seen := bufio.NewScanner(res.Body), 0
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			if seen++; seen == 2 {
				return nil
			}
		}
	}
	return fmt.Errorf("scale: the stream ended after %d samples: %w", seen, lines.Err())
}
