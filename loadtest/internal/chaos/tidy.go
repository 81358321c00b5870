package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// Remains is what lies on the server when all is done and the workers still run.
type Remains struct {
	Consumers int            // of the stream's group or of the retry stream's, whichever has more
	Records   int            // lease records
	Conns     int            // of all clients
	Keys      []string       // all there are, sorted; of markers only their pattern
	Markers   map[string]int // how many there are of each pattern: with DedupeTTL one a message
	Unknown   []string       // keys that the page on the wire format does not name
}

// pattern is what stands for a key: itself, but of a marker, which is one of many, what all of its kind begin with, and *.
func pattern(key string) (name string, marker bool) {
	for _, kind := range []string{".seen:", ".sent:"} {
		if head, _, ok := strings.Cut(key, kind); ok {
			return head + kind + "*", true
		}
	}
	return key, false
}

// known are the ends of all keys that may stay, behind the stream's name in braces.
var known = []string{
	"", ".groups", ".meta", ".due", ".parked", "." + group + ".retry", "." + group + ".dlq", "." + group + ".due",
	"." + group + ".parked", "." + group + ".workers", "." + group + ".meta", "." + group + ".seen:*",
}

// remains looks.
func remains(addr string) (r Remains, err error) {
	c, err := resp.Dial(addr, time.Second)
	if err != nil {
		return r, err
	}
	defer c.Close()
	do := func(args ...string) []any {
		var v any
		if err == nil {
			v, err = c.Do(5*time.Second, args...)
		}
		list, _ := v.([]any)
		return list
	}
	key := "{" + stream + "}"
	r.Markers = map[string]int{}
	for _, k := range do("KEYS", "*") {
		name, marker := pattern(fmt.Sprint(k))
		if marker {
			if r.Markers[name]++; r.Markers[name] > 1 {
				continue
			}
		}
		r.Keys = append(r.Keys, name)
		end, ours := strings.CutPrefix(name, key)
		if name != "xstreamq:registry" && (!ours || !slices.Contains(known, end)) {
			r.Unknown = append(r.Unknown, name)
		}
	}
	for _, k := range []string{key, key + "." + group + ".retry"} {
		r.Consumers = max(r.Consumers, len(do("XINFO", "CONSUMERS", k, group)))
	}
	slices.Sort(r.Keys)
	r.Records = len(do("HKEYS", key+"."+group+".workers"))
	var list any
	if err == nil {
		list, err = c.Do(5*time.Second, "CLIENT", "LIST", "TYPE", "normal")
	}
	r.Conns = strings.Count(fmt.Sprint(list), "\n") - 1 // without this one
	return r, err
}

// settle waits until no more than the live workers' names are left, or for so long, and returns what is there.
func settle(where *site, live int, within time.Duration) (r Remains, err error) {
	for end := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		addr, err := where.addr()
		if err == nil {
			r, err = remains(addr)
		}
		if err != nil || r.Consumers <= live && r.Records <= live || time.Now().After(end) {
			return r, err
		}
	}
}

// Growth compares samples of a worker and of the server: the least heap and goroutines of the few from a sixth of the trial on,
// and of the last few. What is in work at the moment of a sample counts, so the least says most. Faults cut connections, and keys
// come and go with what is in work: of these the most of the few count.
type Growth struct {
	Goroutines, GoroutinesEnd int64
	Heap, HeapEnd             int64
	Conns, ConnsEnd           int64
	Markers, MarkersEnd       int64
	Keys, KeysEnd             []string
}

const samplesCompared = 6

func growth(list []ledger.Sample, stock []Remains) (g Growth, ok bool) {
	first, last, ok := ends(list)
	before, after, enough := ends(stock)
	if !ok || !enough {
		return g, false
	}
	least := func(part []ledger.Sample) (goroutines, heap int64) {
		goroutines, heap = part[0].Goroutines, part[0].Heap
		for _, s := range part {
			goroutines, heap = min(goroutines, s.Goroutines), min(heap, s.Heap)
		}
		return goroutines, heap
	}
	held := func(part []Remains) (conns, markers int64, keys []string) {
		for _, r := range part {
			var n int64
			for _, of := range r.Markers {
				n += int64(of)
			}
			conns, markers, keys = max(conns, int64(r.Conns)), max(markers, n), append(keys, r.Keys...)
		}
		slices.Sort(keys)
		return conns, markers, slices.Compact(keys)
	}
	g.Goroutines, g.Heap = least(first)
	g.GoroutinesEnd, g.HeapEnd = least(last)
	g.Conns, g.Markers, g.Keys = held(before)
	g.ConnsEnd, g.MarkersEnd, g.KeysEnd = held(after)
	return g, true
}

// ends are the few from a sixth on, and the last few.
func ends[T any](list []T) (first, last []T, ok bool) {
	from := len(list) / 6
	if len(list) < from+2*samplesCompared {
		return nil, nil, false
	}
	return list[from : from+samplesCompared], list[len(list)-samplesCompared:], true
}

// grew says that more than a tenth was added.
func grew(before, after int64) bool { return float64(after) > 1.1*float64(before) }
