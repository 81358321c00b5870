package redistest

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// maxPrefixName leaves room for the number within the 200 bytes a prefix may have.
const maxPrefixName = 150

var prefixes atomic.Uint64

// Prefix is a key prefix that no other call in this process returns, not even
// for the same test run again. It is a legal prefix of this library: ASCII
// without braces, blanks or control characters, at most 200 bytes, and names the test.
func Prefix(t testing.TB) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("-_./#", r):
			return r
		}
		return '_'
	}, t.Name())
	return fmt.Sprintf("%s.%d:", name[:min(len(name), maxPrefixName)], prefixes.Add(1))
}

// Eventually returns when the condition holds and fails the test when it does not
// within the given time. It asks every few milliseconds: for what gives no signal
// to wait on, such as the state of a server. Call it from the test's goroutine.
func Eventually(t testing.TB, within time.Duration, condition func() bool, what string) {
	t.Helper()
	for end := time.Now().Add(within); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
