package browser_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/dash"
)

// meter counts what a dashboard is asked.
type meter struct {
	streams atomic.Int64 // that are open
	polls   atomic.Int64
}

func (m *meter) before(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/api/live"):
			m.streams.Add(1)
			defer m.streams.Add(-1)
		case strings.HasSuffix(r.URL.Path, "/api/ls"):
			m.polls.Add(1)
		}
		h.ServeHTTP(w, r)
	})
}

const liveText = `document.querySelector('#live').textContent`

// Where server-sent events do not come through, refused or swallowed, the page polls.
func TestPollingWhereStreamsAreBlocked(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no streams here", http.StatusBadGateway) },
		"swallowed": func(w http.ResponseWriter, r *http.Request) { // a proxy that waits for the end of an answer
			w.WriteHeader(http.StatusOK)
			<-r.Context().Done()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var m meter
			s := newSiteBehind(t, dash.Config{}, func(h http.Handler) http.Handler {
				return m.before(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasSuffix(r.URL.Path, "/api/live") {
						block(w, r)
						return
					}
					h.ServeHTTP(w, r)
				}))
			})
			s.group("orders", "billing")
			p := s.page()
			s.steps(p.Go(s.web.URL+"/"), p.Wait(liveText+` === 'polling'`))
			s.die("orders", "billing", "retries", "x", "1")
			s.steps(p.Wait(`document.querySelector('a[data-dead="billing"]').textContent === '1'`))
			if m.polls.Load() < 2 {
				t.Errorf("%d polls", m.polls.Load())
			}
		})
	}
}

// A tab that nobody sees asks nothing; it goes on when it is seen again.
func TestHiddenTabAsksNothing(t *testing.T) {
	t.Parallel()
	var m meter
	s := newSiteBehind(t, dash.Config{}, m.before)
	s.group("orders", "billing")
	p := s.page()
	s.steps(p.Go(s.web.URL+"/"), p.Wait(liveText+` === 'live'`), p.Hide(true), p.Wait(`document.hidden`), p.Wait(liveText+` === 'held'`))
	s.eventually(func() bool { return m.streams.Load() == 0 }, "the stream is closed")
	s.die("orders", "billing", "retries", "x", "1")
	polls := m.polls.Load()
	time.Sleep(2 * time.Second) // several samples: that nothing comes cannot be waited for
	if m.streams.Load() != 0 || m.polls.Load() != polls {
		t.Errorf("a hidden tab asks: %d streams, %d polls", m.streams.Load(), m.polls.Load()-polls)
	}
	s.steps(p.Wait(`document.querySelector('a[data-dead="billing"]').textContent === '0'`))
	s.steps(p.Hide(false), p.Wait(`document.querySelector('a[data-dead="billing"]').textContent === '1'`), p.Wait(liveText+` === 'live'`))
}

// Rows that are selected stay where they are: nothing is asked until the selection ends.
func TestSelectedRowsHoldLiveUpdates(t *testing.T) {
	t.Parallel()
	var m meter
	s := newSiteBehind(t, dash.Config{}, m.before)
	s.group("orders", "billing")
	s.die("orders", "billing", "retries", "x", "1")
	p := s.page()
	const total = `document.querySelector('[data-total]').textContent.split(' ')[0]`
	s.steps(
		p.Go(s.web.URL+"/"+at("dead", "orders", "billing")), p.Wait(liveText+` === 'live'`),
		p.Click(`tbody tr:nth-child(1) input`), p.Wait(liveText+`.includes('selected')`),
	)
	s.eventually(func() bool { return m.streams.Load() == 0 }, "the stream is closed")
	s.die("orders", "billing", "retries", "y", "2")
	time.Sleep(2 * time.Second) // as above
	s.steps(p.Wait(total+` === '1'`), p.Wait(`document.querySelectorAll('tbody tr').length === 1`))
	if m.streams.Load() != 0 {
		t.Error("it streams while a row is selected")
	}
	s.steps(p.Click(`[data-none]`), p.Wait(total+` === '2'`), p.Wait(liveText+` === 'live'`))
}

// A group's page shows why it is paused, and reads again who holds what.
func TestGroupPageIsLive(t *testing.T) {
	t.Parallel()
	s := newSite(t, dash.Config{})
	g := s.group("orders", "billing")
	s.die("orders", "billing", "retries", "x", "1")
	p := s.page()
	s.steps(p.Go(s.web.URL+"/"+at("group", "orders", "billing")), p.Wait(`document.querySelectorAll('#at-pending tbody tr').length === 0`))
	if err := g.Pause(t.Context(), "deploy <b>42</b>", time.Hour); err != nil {
		t.Fatal(err)
	}
	s.steps(p.Wait(`document.querySelector('[data-pause]').textContent.includes('deploy <b>42</b>') && document.querySelectorAll('[data-pause] time').length === 2`))
	for range 2 {
		if _, err := s.srv.Do("XADD", "{orders}", "*", "body", "1"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.srv.Do("XREADGROUP", "GROUP", "billing", "worker-1", "COUNT", "2", "STREAMS", "{orders}", ">"); err != nil {
		t.Fatal(err)
	}
	s.steps(p.Wait(`document.querySelectorAll('#at-pending tbody tr').length === 2`), p.Wait(`document.querySelector('#at-consumers').textContent.includes('worker-1')`))
}
