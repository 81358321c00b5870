package otelxstreamq_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	apitrace "go.opentelemetry.io/otel/trace"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/otelxstreamq"
	"github.com/xstreamq/xstreamq/xstreamqtest"
)

// rig is a kit whose client is traced and measured into memory.
type rig struct {
	kit    *xstreamqtest.Kit
	spans  *tracetest.InMemoryExporter
	reader *metric.ManualReader
	tracer apitrace.Tracer
	hooks  xstreamq.Hooks
}

func newRig(t *testing.T) rig {
	t.Helper()
	r := rig{spans: tracetest.NewInMemoryExporter(), reader: metric.NewManualReader()}
	tracers := trace.NewTracerProvider(trace.WithSyncer(r.spans))
	r.tracer = tracers.Tracer("test")
	r.hooks = otelxstreamq.Hooks(otelxstreamq.WithTracerProvider(tracers), otelxstreamq.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(r.reader))))
	r.kit = xstreamqtest.New(t, xstreamq.WithHooks(r.hooks))
	return r
}

// Publish, two failures, death, redrive, success: one trace, whose attempts are children of the publish and linked to it,
// and what the handler publishes belongs to its run.
func TestOneStory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	orders := xstreamq.NewQueue[int](r.kit.Client(), "orders")
	receipts := xstreamq.NewQueue[string](r.kit.Client(), "receipts")
	mended := false // written between two Drains
	if _, err := orders.Subscribe("billing", func(ctx context.Context, _ *xstreamq.Message[int]) error {
		if !mended {
			return errors.New("broken")
		}
		_, err := receipts.Publish(ctx, "paid")
		return err
	}, xstreamq.MaxRetries(1)); err != nil {
		t.Fatal(err)
	}
	ctx, request := r.tracer.Start(t.Context(), "POST /orders")
	published, err := orders.Publish(ctx, 42)
	request.End()
	if err != nil {
		t.Fatal(err)
	}
	if got := r.kit.Drain(); got.Failed != 1 || got.Dead != 1 {
		t.Fatalf("%+v", got)
	}
	mended = true
	if res, err := r.kit.Client().Admin().Group("orders", "billing").RedriveAll(t.Context(), xstreamq.Filter{}, xstreamq.Bulk{}); err != nil || res.Done != 1 {
		t.Fatal(res, err)
	}
	if got := r.kit.Drain(); got.Acked != 1 {
		t.Fatalf("%+v", got)
	}

	var publish, receipt tracetest.SpanStub
	var attempts []tracetest.SpanStub
	for _, s := range r.spans.GetSpans() {
		if s.SpanContext.TraceID() != request.SpanContext().TraceID() {
			t.Errorf("span %s is in a trace of its own", s.Name)
		}
		switch s.Name {
		case "publish orders":
			publish = s
		case "publish receipts":
			receipt = s
		case "process orders":
			attempts = append(attempts, s)
		}
	}
	if publish.SpanKind != apitrace.SpanKindProducer || publish.Parent.SpanID() != request.SpanContext().SpanID() {
		t.Errorf("the publish is a %s under %s", publish.SpanKind, publish.Parent.SpanID())
	}
	if len(attempts) != 3 {
		t.Fatalf("%d attempts, want 3", len(attempts))
	}
	want := []struct {
		outcome string
		attempt int64
		status  codes.Code
	}{{"failed", 1, codes.Error}, {"dead", 2, codes.Error}, {"acked", 1, codes.Unset}} // a redrive begins anew
	for i, s := range attempts {
		if s.SpanKind != apitrace.SpanKindConsumer || s.Parent.SpanID() != publish.SpanContext.SpanID() ||
			len(s.Links) != 1 || s.Links[0].SpanContext.SpanID() != publish.SpanContext.SpanID() {
			t.Errorf("attempt %d is a %s under %s with links %v, want a consumer under and linked to %s", i, s.SpanKind, s.Parent.SpanID(), s.Links, publish.SpanContext.SpanID())
		}
		a := attribute.NewSet(s.Attributes...)
		outcome, _ := a.Value("xstreamq.outcome")
		attempt, _ := a.Value("xstreamq.attempt")
		id, _ := a.Value("messaging.message.id")
		if outcome.AsString() != want[i].outcome || attempt.AsInt64() != want[i].attempt || id.AsString() != published.ID || s.Status.Code != want[i].status {
			t.Errorf("attempt %d: %s, %d, id %s, %v; want %+v", i, outcome.AsString(), attempt.AsInt64(), id.AsString(), s.Status, want[i])
		}
	}
	if receipt.Parent.SpanID() != attempts[2].SpanContext.SpanID() {
		t.Error("what the handler published is not a child of its run")
	}
}

// A message without a context begins a trace, and is no part of the trace in which the client was started.
func TestForeignMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, main := r.tracer.Start(t.Context(), "main")
	if _, err := xstreamq.NewQueue[int](r.kit.Client(), "orders").Subscribe("billing", func(context.Context, *xstreamq.Message[int]) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := r.kit.Client().Start(ctx); err != nil {
		t.Fatal(err)
	}
	plain, err := xstreamq.Open(r.kit.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plain.Close() })
	if _, err := xstreamq.NewQueue[int](plain, "orders").Publish(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	r.kit.Drain()
	spans := r.spans.GetSpans()
	if len(spans) != 1 || spans[0].SpanContext.TraceID() == main.SpanContext().TraceID() || spans[0].Parent.IsValid() || len(spans[0].Links) > 0 {
		t.Errorf("spans %+v", spans)
	}
}

var row = regexp.MustCompile("(?m)^\\| (span|attribute|metric) \\| `([^`]+)` \\|")

// The table in docs/telemetry.md lists what the code makes, no more and no less.
func TestNamesAreListed(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		listed[m[1]+" "+m[2]] = true
	}
	made := map[string]bool{}
	r := newRig(t)
	orders := xstreamq.NewQueue[int](r.kit.Client(), "orders")
	if _, err := orders.Subscribe("billing", func(context.Context, *xstreamq.Message[int]) error { return errors.New("broken") }, xstreamq.MaxRetries(0)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := orders.Publish(t.Context(), 1, xstreamq.Delay(time.Hour), xstreamq.DedupeID("a")); err != nil {
			t.Fatal(err)
		}
	}
	r.kit.Drain()
	r.hooks.Reclaimed(t.Context(), xstreamq.GroupRef{Stream: "orders", Group: "billing"}, 1)
	for _, s := range r.spans.GetSpans() {
		made["span "+strings.Replace(s.Name, " orders", " <stream>", 1)] = true
		for _, a := range s.Attributes {
			made["attribute "+string(a.Key)] = true
		}
	}
	if err := r.kit.Client().Close(); err != nil { // hooks may tell dead letters later
		t.Fatal(err)
	}
	var data metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			made["metric "+m.Name] = true
			var sets []attribute.Set
			switch d := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					sets = append(sets, p.Attributes)
				}
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					sets = append(sets, p.Attributes)
				}
			}
			for _, set := range sets {
				for _, a := range set.ToSlice() {
					made["attribute "+string(a.Key)] = true
				}
			}
		}
	}
	if !maps.Equal(listed, made) {
		t.Errorf("docs/telemetry.md lists\n%s\nthe code makes\n%s", sorted(listed), sorted(made))
	}
}

func sorted(m map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(m)), "\n") }
