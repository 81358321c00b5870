package promxstreamq

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/xstreamq/xstreamq"
)

// Hooks measures what a client does. Give them to xstreamq.WithHooks. Clients that share a registry share the metrics.
// buckets are those of handlers, in seconds; default 1 ms to 1 h. Errors: what the registry says, such as a metric of
// the same name that is another's.
func Hooks(reg prometheus.Registerer, buckets ...float64) (xstreamq.Hooks, error) {
	if len(buckets) == 0 {
		buckets = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	}
	var errs []error
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register(reg, &errs, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels))
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return register(reg, &errs, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels))
	}
	published := counter("xstreamq_publishes_total", "Publishes by their result.", "stream", "result")
	took := histogram("xstreamq_publish_seconds", "Time until Redis confirmed a publish, or it failed.", prometheus.DefBuckets, "stream")
	delivered := counter("xstreamq_deliveries_total", "Deliveries by what became of them.", "stream", "group", "outcome")
	handled := histogram("xstreamq_handler_seconds", "Time that handlers ran.", buckets, "stream", "group", "outcome")
	running := register(reg, &errs, prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "xstreamq_handlers_running", Help: "Handlers that run now.",
	}, []string{"stream", "group"}))
	dead := counter("xstreamq_dead_letters_total", "Dead letters that this process made.", "stream", "group", "reason")
	taken := counter("xstreamq_reclaimed_total", "Messages taken over from workers that died.", "stream", "group")
	if err := errors.Join(errs...); err != nil {
		return xstreamq.Hooks{}, err
	}
	return xstreamq.Hooks{
		PublishStart: func(ctx context.Context, _ *xstreamq.Outgoing) context.Context {
			return context.WithValue(ctx, publishKey{}, time.Now())
		},
		PublishEnd: func(ctx context.Context, o *xstreamq.Outgoing, p xstreamq.Published, err error) {
			published.WithLabelValues(o.Stream, result(p, err)).Inc()
			if began, ok := ctx.Value(publishKey{}).(time.Time); ok {
				took.WithLabelValues(o.Stream).Observe(time.Since(began).Seconds())
			}
		},
		HandleStart: func(ctx context.Context, d *xstreamq.Delivery) context.Context {
			running.WithLabelValues(d.Stream, d.Group).Inc()
			return context.WithValue(ctx, handleKey{}, true)
		},
		HandleEnd: func(ctx context.Context, d *xstreamq.Delivery, o xstreamq.Outcome, _ error, took time.Duration) {
			delivered.WithLabelValues(d.Stream, d.Group, string(o)).Inc()
			if ctx.Value(handleKey{}) != nil { // else it ended before a handler saw it
				running.WithLabelValues(d.Stream, d.Group).Dec()
				handled.WithLabelValues(d.Stream, d.Group, string(o)).Observe(took.Seconds())
			}
		},
		DeadLettered: func(_ context.Context, l xstreamq.DeadLetter) {
			dead.WithLabelValues(l.Stream, l.Group, string(l.Reason)).Inc()
		},
		Reclaimed: func(_ context.Context, g xstreamq.GroupRef, n int) {
			taken.WithLabelValues(g.Stream, g.Group).Add(float64(n))
		},
	}, nil
}

type (
	publishKey struct{}
	handleKey  struct{}
)

// result is one of few: texts of errors are without number.
func result(p xstreamq.Published, err error) string {
	switch {
	case errors.Is(err, xstreamq.ErrUncertain):
		return "uncertain"
	case err != nil:
		return "failed"
	case p.Duplicate:
		return "duplicate"
	}
	return "stored"
}

// register registers c, or finds what stands under its name.
func register[C prometheus.Collector](reg prometheus.Registerer, errs *[]error, c C) C {
	err := reg.Register(c)
	if had, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if c, ok := had.ExistingCollector.(C); ok {
			return c
		}
	}
	*errs = append(*errs, err)
	return c
}
