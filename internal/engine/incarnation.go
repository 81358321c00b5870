package engine

import (
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"
	"time"
)

// incarnation is one consumer name and its lease. A name is used until its lease is lost, the group is, or another server
// process answers; then the subscription goes on under a new one.
type incarnation struct {
	name string
	held map[heldKey]*Run // read under this name and not settled; guarded by Sub.mu

	void   atomic.Bool // taken from us: what it holds is no longer ours
	fenced atomic.Bool // another server process answers: settle only through the owner-checked script
	lease  atomic.Pointer[time.Time]
}

func newIncarnation(prefix string) *incarnation {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return &incarnation{name: prefix + "~" + hex.EncodeToString(b[:]), held: map[heldKey]*Run{}}
}

func (i *incarnation) isVoid() bool { return i == nil || i.void.Load() }

// renew counts the lease from the moment the answered heartbeat was sent.
func (i *incarnation) renew(sent time.Time) { i.lease.Store(&sent) }

// left is what remains of the lease, by the monotonic clock and by the wall clock, whichever went further: the one stands
// still while a machine sleeps, the other may be set.
func (i *incarnation) left(visibility time.Duration) time.Duration {
	sent := i.lease.Load()
	if sent == nil || i.void.Load() {
		return 0
	}
	now := time.Now()
	return visibility - max(now.Sub(*sent), now.Round(0).Sub(sent.Round(0)))
}
