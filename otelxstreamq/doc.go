// Package otelxstreamq makes OpenTelemetry traces and metrics of a client's work.
//
//	client, err := xstreamq.Open(url, xstreamq.WithHooks(otelxstreamq.Hooks()))
//
// A publish is a producer span, and its context travels in the message's headers (traceparent, tracestate, baggage). Each
// run of a handler is a consumer span: a child of the publish, and linked to it. Headers stay with a message through
// delays, retries, dead letters and redrives, so that all attempts, in whatever process, are one trace. What a handler
// publishes is a child of the run that did it.
//
// A message without a context in its headers (from a producer without tracing) begins a trace with each attempt.
//
// Names follow the semantic conventions for messaging, where they have one; docs/telemetry.md in the repository lists all.
// Providers and propagator are the global ones unless options say otherwise.
package otelxstreamq
