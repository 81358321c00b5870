package xstreamqtest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// silent is how long, in real time, a worker may be unheard of and still keep its lease over a jump.
const silent = 3 * time.Second

// setClock gives the server the time; the clock's lock is held.
func (k *Kit) setClock() time.Time {
	now := time.Now().UTC().Add(k.ahead)
	k.server.SetTime(now)
	return now
}

// Now is the server's time: DeliverAt and AtTime go by it. It is the test's own until the first jump.
func (k *Kit) Now() time.Time {
	k.clock.Lock()
	defer k.clock.Unlock()
	return k.setClock()
}

// Advance moves the server's clock ahead by d; sweeps see it within 50 ms. What was published with a delay, waits out a
// backoff, or belongs to a worker that died becomes due as if the time had passed. A negative d fails the test.
func (k *Kit) Advance(d time.Duration) {
	k.t.Helper()
	if d < 0 {
		k.t.Fatalf("xstreamqtest: Advance(%s): the clock goes ahead only", d)
	}
	k.clock.Lock()
	defer k.clock.Unlock()
	k.advance(d)
}

// advance moves the clock and writes the leases as they stand after a time in which all that live went on. A sweep may run
// between any two of its steps: live workers are first, so that none counts as dead, and the others last, after the mark
// without which a sweep takes the jump for a time in which nobody swept, and lets nobody grow old.
func (k *Kit) advance(d time.Duration) {
	before := k.setClock()
	type aging struct{ key, worker, record string }
	var old []aging
	k.ahead += d
	now := k.setClock()
	keys := k.server.Keys()
	for _, key := range keys {
		if !strings.HasSuffix(key, ".workers") {
			continue
		}
		workers, _ := k.server.HKeys(key) // none: it went meanwhile
		for _, w := range workers {
			record := k.server.HGet(key, w)
			l, ok := parseLease(record)
			switch {
			case !ok:
			case l.live(before):
				k.server.HSet(key, w, l.at(now))
			default:
				old = append(old, aging{key, w, record})
			}
		}
	}
	for _, key := range keys {
		if meta, ok := strings.CutSuffix(key, ".workers"); ok && k.server.HGet(meta+".meta", "swept") != "" {
			k.server.HSet(meta+".meta", "swept", fmt.Sprint(now.UnixMilli()))
		}
	}
	for _, a := range old {
		if k.server.HGet(a.key, a.worker) != "" { // else a sweep has taken it out
			k.server.HSet(a.key, a.worker, a.record)
		}
	}
}

// lease is a lease record of docs/wire-format.md.
type lease struct {
	heartbeat, visibility time.Duration // since the epoch; how long it lasts
	parts                 []string
}

func parseLease(record string) (lease, bool) {
	parts := strings.Split(record, "|")
	if len(parts) != 5 {
		return lease{}, false
	}
	vis, err := strconv.ParseInt(parts[0], 10, 64)
	hb, err2 := strconv.ParseInt(parts[1], 10, 64)
	ms := time.Millisecond
	return lease{time.Duration(hb) * ms, time.Duration(vis) * ms, parts}, err == nil && err2 == nil
}

// live says that its worker was heard of lately. A foreign one never is: nobody renews it.
func (l lease) live(now time.Time) bool {
	return l.parts[3] == "live" && now.UnixMilli()-l.heartbeat.Milliseconds() < silent.Milliseconds()
}

// at is the record with a heartbeat of now.
func (l lease) at(now time.Time) string {
	l.parts[1] = fmt.Sprint(now.UnixMilli())
	return strings.Join(l.parts, "|")
}

// nextDue is the earliest time at which something parked is due.
func (k *Kit) nextDue() (at time.Time, ok bool) {
	for _, key := range k.server.Keys() {
		if !strings.HasSuffix(key, ".due") {
			continue
		}
		set, _ := k.server.SortedSet(key) // none: it went meanwhile
		for _, ms := range set {
			if t := time.UnixMilli(int64(ms)); !ok || t.Before(at) {
				at, ok = t, true
			}
		}
	}
	return at, ok
}

// nextLoss is how far ahead the first lease of a silent worker ends, a sweep's grace included.
func (k *Kit) nextLoss(now time.Time) (d time.Duration, ok bool) {
	for _, key := range k.server.Keys() {
		if !strings.HasSuffix(key, ".workers") {
			continue
		}
		workers, _ := k.server.HKeys(key) // likewise
		for _, w := range workers {
			l, parsed := parseLease(k.server.HGet(key, w))
			if !parsed || l.live(now) {
				continue
			}
			end := time.UnixMilli(l.heartbeat.Milliseconds()).Add(l.visibility + 2*time.Second)
			if left := max(end.Sub(now), 0); !ok || left < d {
				d, ok = left, true
			}
		}
	}
	return d, ok
}
