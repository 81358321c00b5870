package promxstreamq_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/promxstreamq"
	"github.com/xstreamq/xstreamq/xstreamqtest"
)

// site is a kit whose client is measured, with something in every place that a message can be in.
type site struct {
	kit   *xstreamqtest.Kit
	reg   *prometheus.Registry
	hooks xstreamq.Hooks
	leave chan struct{} // closed: the handler in flight ends
}

func newSite(t *testing.T, opts ...promxstreamq.Option) *site {
	t.Helper()
	s := &site{reg: prometheus.NewRegistry(), leave: make(chan struct{})}
	var err error
	if s.hooks, err = promxstreamq.Hooks(s.reg); err != nil {
		t.Fatal(err)
	}
	s.kit = xstreamqtest.New(t, xstreamq.WithHooks(s.hooks))
	s.reg.MustRegister(promxstreamq.NewCollector(s.kit.Client().Admin(), opts...))
	return s
}

func (s *site) fill(t *testing.T) {
	t.Helper()
	orders := xstreamq.NewQueue[string](s.kit.Client(), "orders")
	entered := make(chan struct{})
	ended := make(chan xstreamq.Outcome, 10)
	sub, err := orders.Subscribe("billing", func(_ context.Context, m *xstreamq.Message[string]) error {
		switch m.Body {
		case "hold":
			close(entered)
			<-s.leave
		case "fail":
			return errors.New("failed")
		case "reject":
			return xstreamq.Reject(errors.New("rejected"))
		}
		return nil
	}, xstreamq.WithMiddleware(func(next xstreamq.Handler) xstreamq.Handler {
		return func(ctx context.Context, d *xstreamq.Delivery) error {
			err := next(ctx, d)
			ended <- xstreamq.OutcomeAcked
			return err
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.kit.Client().Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sub.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.kit.Client().Admin().Group("orders", "search").Create(t.Context(), xstreamq.Head); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"ok", "fail", "reject", "hold"} {
		if _, err := orders.Publish(t.Context(), body); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := orders.Publish(t.Context(), "later", xstreamq.Delay(time.Hour)); err != nil {
		t.Fatal(err)
	}
	<-entered
	for range 3 {
		<-ended
	}
	if err := s.kit.Client().Admin().Group("orders", "search").Pause(t.Context(), "test", 0); err != nil {
		t.Fatal(err)
	}
	billing := s.kit.Client().Admin().Group("orders", "billing")
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // settled, and counted
		d, err := billing.Depth(t.Context())
		totals, err2 := billing.Totals(t.Context())
		if err == nil && err2 == nil && d.Pending == 1 && d.Retrying == 1 && d.Dead == 1 && totals.Dead == 1 && totals.Processed == 1 && totals.Failed == 2 {
			return
		}
		if time.Now().After(until) {
			t.Fatal(d, totals, err, err2)
		}
	}
}

// figures are a scrape's values by name and labels, counts of histograms included.
func (s *site) figures(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := s.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			key := f.GetName() + " " + strings.Join(labels, " ")
			switch f.GetType() {
			case dto.MetricType_HISTOGRAM:
				out[key] = float64(m.GetHistogram().GetSampleCount())
			case dto.MetricType_COUNTER:
				out[key] = m.GetCounter().GetValue()
			default:
				out[key] = m.GetGauge().GetValue()
			}
		}
	}
	return out
}

// Prometheus has what Admin has. Labels are in the order of their names: group, stream.
func TestFiguresEqualAdmins(t *testing.T) {
	t.Parallel()
	s := newSite(t, promxstreamq.CacheFor(0))
	s.fill(t)
	defer close(s.leave)
	got := s.figures(t)
	depths, err := s.kit.Client().Admin().Depths(t.Context())
	if err != nil || len(depths) != 2 {
		t.Fatal(depths, err)
	}
	bit := map[bool]float64{true: 1}
	want := map[string]float64{
		"xstreamq_up ": 1, "xstreamq_incomplete ": 0,
		"xstreamq_stream_entries orders": float64(depths[0].Length), "xstreamq_stream_delayed orders": 1,
	}
	for _, d := range depths {
		of := d.Group + " " + d.Stream
		totals, err := s.kit.Client().Admin().Group(d.Stream, d.Group).Totals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]float64{
			"lag": float64(*d.Lag), "pending": float64(d.Pending), "retry": float64(d.Retry), "retrying": float64(d.Retrying),
			"dead": float64(d.Dead), "consumers": float64(d.Consumers), "paused": bit[d.Paused], "processed_total": float64(totals.Processed),
			"failed_total": float64(totals.Failed), "dead_total": float64(totals.Dead),
		} {
			want["xstreamq_group_"+name+" "+of] = v
		}
		if age := got["xstreamq_group_oldest_seconds "+of]; (age > 0) != (d.Oldest > 0) || age > d.Oldest.Seconds() {
			t.Errorf("%s: oldest %g s, Admin says %s a moment later", of, age, d.Oldest)
		}
	}
	if depths[0].Dead != 1 || depths[0].Pending != 1 || depths[0].Retrying != 1 || *depths[1].Lag != 4 || !depths[1].Paused {
		t.Errorf("what was to be compared is not there: %+v", depths)
	}
	for outcome, n := range map[string]float64{"acked": 1, "failed": 1, "rejected": 1} {
		want["xstreamq_deliveries_total billing "+outcome+" orders"] = n
		want["xstreamq_handler_seconds billing "+outcome+" orders"] = n
	}
	want["xstreamq_handlers_running billing orders"] = 1
	want["xstreamq_publishes_total stored orders"] = 5
	want["xstreamq_publish_seconds orders"] = 5
	for key, v := range want {
		if had, ok := got[key]; !ok || had != v {
			t.Errorf("%s is %g (there: %v), want %g", key, had, ok, v)
		}
	}
}

// When Redis is away, up says so and no old figure is shown; when it is back, all are.
func TestRedisDown(t *testing.T) {
	t.Parallel()
	s := newSite(t, promxstreamq.CacheFor(0), promxstreamq.Timeout(300*time.Millisecond))
	s.fill(t)
	defer close(s.leave)
	for _, text := range []string{"LOADING Redis is loading", "ERR nothing works"} {
		s.kit.Break(errors.New(text))
		for key, v := range s.figures(t) {
			if key == "xstreamq_up " && v != 0 || strings.HasPrefix(key, "xstreamq_group_") || strings.HasPrefix(key, "xstreamq_stream_") {
				t.Errorf("%s: %s is %g", text, key, v)
			}
		}
		s.kit.Mend()
		if got := s.figures(t); got["xstreamq_up "] != 1 || got["xstreamq_group_dead billing orders"] != 1 {
			t.Errorf("%s: back again: %v", text, got)
		}
	}
}

// A server that does not answer is given up on in time.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t, promxstreamq.Timeout(200*time.Millisecond))
	s.kit.Break(errors.New("BUSY a script runs"))
	began := time.Now()
	if got := s.figures(t); got["xstreamq_up "] != 0 {
		t.Errorf("%v", got)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestCacheAndMost(t *testing.T) {
	t.Parallel()
	s := newSite(t, promxstreamq.CacheFor(time.Hour), promxstreamq.MaxGroups(2))
	orders := xstreamq.NewQueue[int](s.kit.Client(), "orders")
	for i := range 3 {
		if _, err := orders.Publish(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if _, err := s.kit.Client().Admin().Group("orders", fmt.Sprint("g", i)).Create(t.Context(), xstreamq.Head); err != nil {
			t.Fatal(err)
		}
		if got := s.figures(t); got["xstreamq_stream_entries orders"] != 1 || got["xstreamq_group_lag g0 orders"] != 1 {
			t.Errorf("read anew within the hour: %v", got)
		}
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(promxstreamq.NewCollector(s.kit.Client().Admin(), promxstreamq.MaxGroups(2)))
	s.reg = reg
	got := s.figures(t)
	if _, third := got["xstreamq_group_lag g2 orders"]; third || got["xstreamq_group_lag g1 orders"] != 3 || got["xstreamq_incomplete "] != 1 {
		t.Errorf("of three groups two may be shown: %v", got)
	}
}

// Two clients of one registry share the metrics; a name that is another's is an error.
func TestHooksTwice(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	for range 2 {
		if _, err := promxstreamq.Hooks(reg); err != nil {
			t.Fatal(err)
		}
	}
	other := prometheus.NewRegistry()
	other.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "xstreamq_publishes_total", Help: "another's"}))
	if _, err := promxstreamq.Hooks(other); err == nil {
		t.Error("a name that is another's is no error")
	}
}

// made are the families that a filled site shows, with their types and labels as docs/telemetry.md lists them.
func made(t *testing.T) map[string]string {
	t.Helper()
	s := newSite(t)
	s.fill(t)
	close(s.leave)
	s.hooks.Reclaimed(t.Context(), xstreamq.GroupRef{Stream: "orders", Group: "billing"}, 1)
	s.hooks.DeadLettered(t.Context(), xstreamq.DeadLetter{Group: "billing"})
	families, err := s.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range families {
		labels := map[string]bool{}
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels[l.GetName()] = true
		}
		out[f.GetName()] = strings.ToLower(f.GetType().String()) + " " + strings.Join(slices.Sorted(maps.Keys(labels)), " ")
	}
	return out
}

var (
	tableRow   = regexp.MustCompile("(?m)^\\| `(xstreamq_[a-z_]+)` \\| ([a-z]+) \\|([^|]*)\\|")
	metricName = regexp.MustCompile(`xstreamq_[a-z_]+`)
)

// The table lists what the code makes, and the dashboard asks for nothing else.
func TestNamesAreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]string{}
	for _, m := range tableRow.FindAllStringSubmatch(string(page), -1) {
		labels := regexp.MustCompile(`[a-z]+`).FindAllString(m[3], -1)
		slices.Sort(labels)
		listed[m[1]] = m[2] + " " + strings.Join(labels, " ")
	}
	made := made(t)
	if !maps.Equal(listed, made) {
		t.Errorf("docs/telemetry.md lists\n%v\nthe code makes\n%v", listed, made)
	}

	file, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID        string
		Templating struct{ List []struct{ Name string } }
		Panels     []struct {
			ID      int
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(file, &dashboard); err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d %q: %+v", p.ID, p.Title, p)
		}
		for _, target := range p.Targets {
			names := metricName.FindAllString(target.Expr, -1)
			if len(names) == 0 {
				t.Errorf("panel %q asks for nothing of ours: %s", p.Title, target.Expr)
			}
			for _, n := range names {
				if strings.HasPrefix(made[strings.TrimSuffix(n, "_bucket")], "histogram") {
					n = strings.TrimSuffix(n, "_bucket")
				}
				asked[n] = true
				if made[n] == "" {
					t.Errorf("panel %q asks for %s, which nobody makes", p.Title, n)
				}
			}
		}
	}
	for n := range made {
		if !asked[n] {
			t.Errorf("no panel shows %s", n)
		}
	}
	if len(dashboard.Templating.List) != 3 || dashboard.UID == "" {
		t.Errorf("variables %v, uid %q", dashboard.Templating.List, dashboard.UID)
	}
}
