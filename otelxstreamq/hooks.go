package otelxstreamq

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/xstreamq/xstreamq"
)

// scope names tracer and meter.
const scope = "github.com/xstreamq/xstreamq/otelxstreamq"

// Option is for Hooks. A nil argument leaves the default.
type Option func(*telemetry)

// WithTracerProvider sets where spans go; default the global provider.
func WithTracerProvider(p trace.TracerProvider) Option {
	return func(t *telemetry) {
		if p != nil {
			t.tracers = p
		}
	}
}

// WithMeterProvider sets where metrics go; default the global provider.
func WithMeterProvider(p metric.MeterProvider) Option {
	return func(t *telemetry) {
		if p != nil {
			t.meters = p
		}
	}
}

// WithPropagator sets how contexts are written to headers; default the global propagator, and W3C trace context and baggage
// as long as none was set.
func WithPropagator(p propagation.TextMapPropagator) Option {
	return func(t *telemetry) {
		if p != nil {
			t.propagator = func() propagation.TextMapPropagator { return p }
		}
	}
}

// Hooks carries trace context in headers, makes producer and consumer spans, and measures. Give it to xstreamq.WithHooks.
func Hooks(opts ...Option) xstreamq.Hooks {
	t := &telemetry{tracers: otel.GetTracerProvider(), meters: otel.GetMeterProvider(), propagator: global}
	for _, o := range opts {
		if o != nil {
			o(t)
		}
	}
	t.tracer = t.tracers.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
	t.measure = newMeasure(t.meters.Meter(scope, metric.WithSchemaURL(semconv.SchemaURL)))
	return xstreamq.Hooks{
		PublishStart: t.publishStart, PublishEnd: t.publishEnd,
		HandleStart: t.handleStart, HandleEnd: t.handleEnd,
		DeadLettered: t.measure.deadLettered, Reclaimed: t.measure.reclaimed,
	}
}

type telemetry struct {
	tracers    trace.TracerProvider
	meters     metric.MeterProvider
	propagator func() propagation.TextMapPropagator
	tracer     trace.Tracer
	measure    measure
}

var w3c = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// global is asked for each time: a program may set it after its clients.
func global() propagation.TextMapPropagator {
	if p := otel.GetTextMapPropagator(); len(p.Fields()) > 0 {
		return p
	}
	return w3c
}

// begun is what a start leaves for its end. It has a key of its own: the span around it is somebody else's.
type begun struct {
	span trace.Span
	at   time.Time
}

type begunKey struct{}

// Attributes that the conventions have no name for.
const (
	attrAttempt = attribute.Key("xstreamq.attempt")
	attrEntryID = attribute.Key("xstreamq.entry_id")
	attrLost    = attribute.Key("xstreamq.lost_leases")
	attrOutcome = attribute.Key("xstreamq.outcome")
	attrReason  = attribute.Key("xstreamq.reason")
	attrDelay   = attribute.Key("xstreamq.delay")
	attrDup     = attribute.Key("xstreamq.duplicate")
)

// system is what messaging.system says.
const system = "xstreamq"

func (t *telemetry) publishStart(ctx context.Context, o *xstreamq.Outgoing) context.Context {
	attrs := []attribute.KeyValue{
		semconv.MessagingSystemKey.String(system), semconv.MessagingOperationName("publish"), semconv.MessagingOperationTypeSend,
		semconv.MessagingDestinationName(o.Stream), semconv.MessagingMessageBodySize(len(o.Body)),
	}
	now := time.Now()
	if !o.Due.IsZero() {
		attrs = append(attrs, attrDelay.Float64(max(0, o.Due.Sub(now).Seconds())))
	}
	ctx, span := t.tracer.Start(ctx, "publish "+o.Stream, trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attrs...))
	t.propagator().Inject(ctx, propagation.MapCarrier(o.Headers))
	return context.WithValue(ctx, begunKey{}, begun{span, now})
}

func (t *telemetry) publishEnd(ctx context.Context, o *xstreamq.Outgoing, p xstreamq.Published, err error) {
	b, ok := ctx.Value(begunKey{}).(begun)
	if !ok {
		return
	}
	if err != nil {
		fail(b.span, err)
	} else {
		b.span.SetAttributes(semconv.MessagingMessageID(p.ID), attrDup.Bool(p.Duplicate))
	}
	b.span.End()
	t.measure.published(ctx, o.Stream, time.Since(b.at), err)
}

func (t *telemetry) handleStart(ctx context.Context, d *xstreamq.Delivery) context.Context {
	// The context has the values of the one that Run was given, and that one's span lives as long as the program.
	ctx = trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	ctx = t.propagator().Extract(ctx, propagation.MapCarrier(d.Headers))
	opts := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		semconv.MessagingSystemKey.String(system), semconv.MessagingOperationName("process"), semconv.MessagingOperationTypeProcess,
		semconv.MessagingDestinationName(d.Stream), semconv.MessagingConsumerGroupName(d.Group),
		semconv.MessagingMessageID(d.ID), semconv.MessagingMessageBodySize(len(d.Raw)),
		attrEntryID.String(d.EntryID), attrAttempt.Int(d.Attempt), attrLost.Int(d.Lost),
	)}
	if published := trace.SpanContextFromContext(ctx); published.IsValid() {
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: published}))
	}
	ctx, span := t.tracer.Start(ctx, "process "+d.Stream, opts...)
	return context.WithValue(ctx, begunKey{}, begun{span: span})
}

func (t *telemetry) handleEnd(ctx context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, err error, took time.Duration) {
	failed := o == xstreamq.OutcomeFailed || o == xstreamq.OutcomeRejected || o == xstreamq.OutcomeDead
	if !failed {
		err = nil // a snooze is no failure
	}
	b, ran := ctx.Value(begunKey{}).(begun)
	if ran {
		b.span.SetAttributes(attrOutcome.String(string(o)))
		if err != nil {
			fail(b.span, err)
		}
		b.span.End()
	}
	t.measure.handled(ctx, d, o, err, took, ran)
}

func fail(span trace.Span, err error) {
	span.RecordError(err)
	span.SetStatus(codes.Error, err.Error())
	span.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
}
