// Package xstreamqtest tests code that publishes or handles messages: without a server, without Docker, and without
// waiting for a backoff.
//
// A [Kit] is a server inside the test process, with a client on it. Each test makes its own, so tests may run in
// parallel; everything ends with the test.
//
//	func TestShip(t *testing.T) {
//		t.Parallel()
//		kit := xstreamqtest.New(t)
//		orders := xstreamq.NewQueue[Order](kit.Client(), "orders")
//		if _, err := orders.Subscribe("shipping", ship); err != nil {
//			t.Fatal(err)
//		}
//		if _, err := orders.Publish(t.Context(), Order{ID: 1}); err != nil {
//			t.Fatal(err)
//		}
//		if got := kit.Drain(); got.Acked != 1 {
//			t.Fatalf("%+v", got)
//		}
//	}
//
// Four ways to test, the simplest first:
//
//   - A handler alone needs no kit: a literal [xstreamq.Message] is all that it takes.
//   - [Handle] runs a handler once as a subscription would, with its options, and says what became of the message.
//   - [Published] is what a producer published.
//   - [Kit.Drain] plays the whole life: retries, delays, leases of dead workers, until nothing is left to do.
//
// # The clock
//
// The server's clock ([Kit.Now]) goes on by itself, and [Kit.Advance] and [Kit.Drain] move it ahead. It alone moves: what runs by the
// program's own clock (a handler's timeout, a drain) takes the time it takes. Workers that are alive keep their leases
// over a jump. One that was silent for 3 seconds of real time, or is no worker of this library, grows older by it.
//
// # What it is not
//
// The server is miniredis. It executes the same scripts as Redis does, but it is slow, keeps nothing, and knows neither
// memory limits nor failovers; [Kit.Break] imitates what those answer. The kit's client sweeps each 50 ms, waits 1 s at
// most for handlers when the test ends, and logs to the test's output; the options given to [New] come after these.
package xstreamqtest
