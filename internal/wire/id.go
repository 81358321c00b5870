package wire

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// CompareIDs orders entry ids as decimal strings: they go beyond what a float or an int64 holds.
func CompareIDs(a, b string) int {
	am, as, _ := strings.Cut(a, "-")
	bm, bs, _ := strings.Cut(b, "-")
	if c := compareDigits(am, bm); c != 0 {
		return c
	}
	return compareDigits(as, bs)
}

func compareDigits(a, b string) int {
	if len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return cmp.Compare(a, b)
}

// lastTime is the end of the year 9999 in ms: JSON has no time beyond it, and an explicit entry id may hold one.
const lastTime = 253_402_300_799_999

// Time is the server time in an entry id or in the id of a delayed publish (d-<ms>-<hex>); zero when there is none, or
// none before the year 10000.
func Time(id string) time.Time {
	id = strings.TrimPrefix(id, "d-")
	ms, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || n <= 0 || n > lastTime {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

// IsEntryID says whether s has the form of an entry id.
func IsEntryID(s string) bool {
	ms, seq, ok := strings.Cut(s, "-")
	return ok && isDigits(ms) && isDigits(seq)
}

func isDigits(s string) bool {
	if s == "" || len(s) > 20 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// NextID is the id right after another: where a page that ended with it goes on.
func NextID(id string) string {
	ms, seq, _ := strings.Cut(id, "-")
	n, err := strconv.ParseUint(seq, 10, 64)
	if err != nil {
		return id
	}
	if n == 1<<64-1 {
		m, err := strconv.ParseUint(ms, 10, 64)
		if err != nil || m == 1<<64-1 {
			return id
		}
		return strconv.FormatUint(m+1, 10) + "-0"
	}
	return ms + "-" + strconv.FormatUint(n+1, 10)
}
