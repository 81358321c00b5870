package browser_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/dash"
	"github.com/xstreamq/xstreamq/loadtest/internal/browser"
)

// violation is what axe finds.
type violation struct {
	ID     string   `json:"id"`
	Impact string   `json:"impact"`
	Help   string   `json:"help"`
	Nodes  []string `json:"nodes"`
}

// Every page keeps all rules of axe-core, its best practices too, in the light, in the dark and on a phone.
func TestEveryPageIsAccessible(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile("axe/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("scripts/setup brings it: %v", err)
	}
	s := newSite(t, dash.Config{Environment: "production"})
	g := s.group("orders", "billing")
	s.group("mails", "sender")
	var dead string
	for range 60 {
		dead = s.die("orders", "billing", "retries", "timeout", `{"id":1}`)
	}
	q := xstreamq.NewQueue[int](s.client, "orders")
	pub, err := q.Publish(t.Context(), 1, xstreamq.Header("tenant", "acme"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Publish(t.Context(), 1, xstreamq.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.srv.Do("XREADGROUP", "GROUP", "billing", "w", "COUNT", "1", "STREAMS", "{orders}", ">"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Redrive(t.Context(), dead, xstreamq.RedriveOptions{}); err != nil {
		t.Fatal(err)
	}
	dead = s.die("orders", "billing", "retries", "timeout", `{"id":1}`)
	if err := g.Pause(t.Context(), "deploy", time.Hour); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{
		"overview": "", "group": at("group", "orders", "billing"), "messages": at("messages", "orders", "billing"), "message": at("message", "orders", "billing", "id", pub.ID),
		"delayed": at("delayed", "orders", "billing"), "dead": at("dead", "orders", "billing"), "letter": at("letter", "orders", "billing", "id", dead),
		"tasks": "?page=tasks", "server": "?page=server", "empty": at("dead", "mails", "sender"), "error": at("messages", "nosuch", ""),
	}
	const all = `undefined`
	look := func(p *browser.Page, what, rules string) {
		t.Helper()
		text, err := browser.Eval[string](p, `axe.run(document, { resultTypes: ['violations'], runOnly: `+rules+` }).then((r) => JSON.stringify({
			passes: r.passes.length, violations: r.violations.map((v) => ({ id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 3).map((n) => n.target.join(' ') + ': ' + n.failureSummary) })) }))`)
		if err != nil {
			t.Fatal(err)
		}
		var found struct {
			Passes     int         `json:"passes"`
			Violations []violation `json:"violations"`
		}
		if err := json.Unmarshal([]byte(text), &found); err != nil {
			t.Fatal(err)
		}
		if found.Passes < 1 || rules == all && found.Passes < 10 {
			t.Errorf("%s: only %d rules had something to look at", what, found.Passes)
		}
		for _, v := range found.Violations {
			t.Errorf("%s: %s (%s): %s\n%s", what, v.ID, v.Impact, v.Help, strings.Join(v.Nodes, "\n"))
		}
	}
	p, err := chromium.Page(1280, 800, "light")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	inForms := func(what string) {
		t.Helper()
		s.steps(p.Form(1280, 800, "light"))
		look(p, what+", light", all)
		s.steps(p.Form(1280, 800, "dark"))
		look(p, what+", dark", `['color-contrast', 'link-in-text-block']`) // the rest does not look at colours
		s.steps(p.Form(390, 844, "light"))
		look(p, what+", phone", all)
	}
	load := func(query string) {
		t.Helper()
		s.steps(p.Form(1280, 800, "light"), p.Go(s.web.URL+"/"+query))
		if _, err := browser.Eval[bool](p, string(axe)+"\n;true"); err != nil {
			t.Fatal(err)
		}
	}
	for name, query := range pages {
		load(query)
		inForms(name)
	}
	load(pages["dead"])
	s.steps(p.Click(`th input[type="checkbox"]`), p.Click(`[data-purge-selected]`), p.See(`dialog [data-confirm]`))
	inForms("dialog")
}
