// Package xstreamq is a message queue on Redis or Valkey Streams: at-least-once delivery, leases that notice a dead
// worker, retries with backoff, dead letters, delayed messages, and fan-out by consumer group.
//
// # The model
//
// A [Queue] is a typed view of one stream. Producers call [Queue.Publish], or send one XADD in any language. Consumers
// call [Queue.Subscribe] with the name of a group: every group gets every message, the workers of one group share them.
//
//	client, err := xstreamq.Open("redis://localhost:6379")
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	orders := xstreamq.NewQueue[Order](client, "orders")
//	_, err = orders.Subscribe("billing", func(ctx context.Context, m *xstreamq.Message[Order]) error {
//		return charge(ctx, m.ID, m.Body) // m.ID is the idempotency key: the same on every retry
//	}, xstreamq.MaxRetries(8))
//	if err != nil {
//		return err
//	}
//	return client.Run(ctx) // until ctx ends, then drains
//
// For each group a message is at any moment in exactly one place: waiting, delayed, in flight, retrying (waiting out
// its backoff), dead, or done. What the handler returns decides where it goes:
//
//   - nil: done;
//   - an error, a panic, or its time being up: a failed attempt, retried after the [Backoff], dead after [MaxRetries];
//   - [RetryAfter]: a failed attempt with a delay of its own;
//   - [Snooze]: back later, no attempt spent;
//   - [Reject]: a dead letter at once.
//
// Without a handler's word a message is dead when it has no body, when its workers died with it more than [MaxLost] times in a
// row, when it is older than [ExpireAfter], or when [MaxParked] is reached; its [Reason] says which. A dead letter stays until it
// is redriven ([GroupAdmin.RedriveAll]) or purged.
//
// Where one call of the database serves many messages, [Queue.SubscribeBatch] hands them over together; where a program has
// a loop of its own, [Queue.Pull] lets it ask.
//
// # Leases
//
// What a worker read is leased to it, and one heartbeat a second renews the lease of all that it holds, however long
// its handlers take. A worker whose heartbeat is older than its [VisibilityTimeout] counts as dead, and its messages go
// to others; that is no failed attempt. A handler's own time is [HandlerTimeout], and [Delivery.Extend] moves its end.
// A worker that lost its lease sees its handlers' contexts end with [ErrLeaseExpired], and can settle nothing that
// another owns now.
//
// # Guarantees
//
// Delivery is at least once: what Publish confirmed is handed out until a handler returns nil or it is a dead letter.
// It is not exactly once, and there is no order. A deploy spends no attempt: what was not started goes to other workers
// at once, running handlers may finish for [DrainTimeout]. An outage of Redis spends none either. What Redis itself may
// lose depends on its persistence and replication; docs/guarantees.md in the repository has the cases.
//
// An error of Publish says what is known: [ErrUnavailable] means that nothing was stored, [ErrUncertain] that it may
// have been. With a [DedupeID] a publish is safe to repeat.
//
// # Defaults
//
// Publishing: 10 s for a call without a deadline, a [DedupeID] is remembered for 10 min, bodies up to 16 MiB. Consuming:
// visibility timeout 30 s, which is a handler's time too, 5 retries, backoff from the visibility timeout, doubled up to 5 min,
// 4 × GOMAXPROCS handlers at once, 30 s to drain. New groups begin at the head of the stream; finished messages are trimmed,
// unless [Retain] keeps them for [GroupAdmin.Seek] to replay. Each option's comment gives its unit, default and bounds; a value
// out of them is [ErrInvalidOption] from the call that takes it.
//
// # Operating
//
// [Client.Admin] is every operation that the command line has: counts, pending messages, dead letters and their
// redrive. Reading creates, delivers and acks nothing. [Hooks] watch, [Middleware] changes what a handler does.
//
// Module xstreamqtest tests handlers and producers without a server, otelxstreamq and promxstreamq trace and measure;
// docs/recipes.md in the repository has idempotent handlers, order for a key and periodic jobs.
package xstreamq
