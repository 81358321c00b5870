// Package redistest runs redis-server processes for tests.
//
// One server serves all tests of a test binary: a package that wants it writes
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
//
// and its tests call [Deployed] for the Redis to test on and [Prefix] for keys that
// no other test uses, so that they may run in parallel. XSTREAMQ_TOPOLOGY says what
// that is: one server, which is the default, a cluster or a master behind a Sentinel.
//
// What a test asks for says what it is about. One that is about a single server asks
// for one, whatever the topology: [Shared] for its address, [Start] for a process of
// its own to stop, freeze or configure. [Cluster] and [Sentinel] are a test's own too.
//
// The server is the command in the environment variable XSTREAMQ_REDIS_SERVER
// (split on white space, so it may hold arguments or a wrapper that execs the
// server), else redis-server on PATH. A test that finds none fails: a suite that
// skips what it cannot reach proves nothing.
//
// Every server listens on a free port of 127.0.0.1, in a directory of its own,
// with persistence off. It is killed when its test or the test binary ends, on
// Linux also when the test binary itself is killed.
package redistest
