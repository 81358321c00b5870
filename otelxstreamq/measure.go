package otelxstreamq

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/messagingconv"

	"github.com/xstreamq/xstreamq"
)

// measure are the instruments; what could not be made is reported once and measures nothing.
type measure struct {
	sent      messagingconv.ClientSentMessages
	operation messagingconv.ClientOperationDuration
	consumed  messagingconv.ClientConsumedMessages
	process   messagingconv.ProcessDuration
	dead      metric.Int64Counter
	taken     metric.Int64Counter
}

func newMeasure(m metric.Meter) measure {
	var out measure
	var errs [6]error
	bounds := metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
	out.sent, errs[0] = messagingconv.NewClientSentMessages(m)
	out.operation, errs[1] = messagingconv.NewClientOperationDuration(m, bounds)
	out.consumed, errs[2] = messagingconv.NewClientConsumedMessages(m)
	out.process, errs[3] = messagingconv.NewProcessDuration(m, bounds)
	out.dead, errs[4] = m.Int64Counter("xstreamq.dead_letters", metric.WithUnit("{message}"), metric.WithDescription("Dead letters that this process made."))
	out.taken, errs[5] = m.Int64Counter("xstreamq.reclaimed.messages", metric.WithUnit("{message}"), metric.WithDescription("Messages taken over from workers that died."))
	if err := errors.Join(errs[:]...); err != nil {
		otel.Handle(err)
	}
	return out
}

func (m measure) published(ctx context.Context, stream string, took time.Duration, err error) {
	attrs := []attribute.KeyValue{semconv.MessagingDestinationName(stream)}
	if err != nil {
		attrs = append(attrs, semconv.ErrorTypeKey.String(errorType(err)))
	}
	m.sent.Add(ctx, 1, "publish", system, attrs...)
	m.operation.Record(ctx, took.Seconds(), "publish", system, append(attrs, semconv.MessagingOperationTypeSend)...)
}

func (m measure) handled(ctx context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, err error, took time.Duration, ran bool) {
	attrs := []attribute.KeyValue{
		semconv.MessagingDestinationName(d.Stream), semconv.MessagingConsumerGroupName(d.Group), attrOutcome.String(string(o)),
	}
	if err != nil {
		attrs = append(attrs, semconv.ErrorTypeKey.String(errorType(err)))
	}
	m.consumed.Add(ctx, 1, "process", system, attrs...)
	if ran {
		m.process.Record(ctx, took.Seconds(), "process", system, attrs...)
	}
}

func (m measure) deadLettered(ctx context.Context, l xstreamq.DeadLetter) {
	m.dead.Add(ctx, 1, metric.WithAttributes(semconv.MessagingSystemKey.String(system),
		semconv.MessagingDestinationName(l.Stream), semconv.MessagingConsumerGroupName(l.Group), attrReason.String(string(l.Reason))))
}

func (m measure) reclaimed(ctx context.Context, g xstreamq.GroupRef, n int) {
	m.taken.Add(ctx, int64(n), metric.WithAttributes(semconv.MessagingSystemKey.String(system),
		semconv.MessagingDestinationName(g.Stream), semconv.MessagingConsumerGroupName(g.Group)))
}

// errorTypes are what error.type says, of few values: Go's type names tell nothing, and texts are without number.
var errorTypes = []struct {
	err  error
	name string
}{
	{xstreamq.ErrUncertain, "uncertain"},
	{xstreamq.ErrAuth, "auth"},
	{xstreamq.ErrUnavailable, "unavailable"},
	{xstreamq.ErrTooLarge, "too_large"},
	{xstreamq.ErrInvalidBody, "invalid_body"},
	{xstreamq.ErrInvalidOption, "invalid_option"},
	{xstreamq.ErrHandlerTimeout, "handler_timeout"},
	{xstreamq.ErrClosed, "closed"},
}

func errorType(err error) string {
	for _, t := range errorTypes {
		if errors.Is(err, t.err) {
			return t.name
		}
	}
	if _, ok := errors.AsType[*xstreamq.PanicError](err); ok {
		return "panic"
	}
	return "_OTHER"
}
