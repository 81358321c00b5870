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
	held []*Run    // read under this name and not settled, each at its Run.at; guarded by Sub.mu
	last [2]string // the largest entry id that was read, of the main and of the retry stream; the reader's

	void   atomic.Bool // taken from us: what it holds is no longer ours
	fenced atomic.Bool // another server process answers: settle only through the owner-checked script
	lease  atomic.Pointer[time.Time]
}

func newIncarnation(prefix string) *incarnation {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return &incarnation{name: prefix + "~" + hex.EncodeToString(b[:])}
}

func (i *incarnation) hold(r *Run) {
	r.at = len(i.held)
	i.held = append(i.held, r)
}

// letGo takes a delivery out of those held; once more changes nothing.
func (i *incarnation) letGo(r *Run) {
	if r.at >= len(i.held) || i.held[r.at] != r {
		return
	}
	end := len(i.held) - 1
	i.held[r.at] = i.held[end]
	i.held[r.at].at = r.at
	i.held[end] = nil
	i.held = i.held[:end]
}

// holds are the entries held.
func (i *incarnation) holds() map[heldKey]bool {
	out := make(map[heldKey]bool, len(i.held))
	for _, r := range i.held {
		out[heldKey{r.Source, r.Msg.EntryID}] = true
	}
	return out
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
