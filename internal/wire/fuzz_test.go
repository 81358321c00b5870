package wire_test

import (
	"errors"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/wire"
)

func FuzzUnpack(f *testing.F) {
	f.Add(wire.Pack([]string{"body", `{"id":1}`, "rc", "1"}))
	f.Fuzz(func(t *testing.T, s string) {
		fields, err := wire.Unpack(s)
		switch {
		case err != nil:
			if !errors.Is(err, wire.ErrMalformed) || fields != nil {
				t.Errorf("Unpack(%q) = %q, %v", s, fields, err)
			}
		case len(fields) == 0 || len(fields)%2 != 0:
			t.Errorf("Unpack(%q) = %q: no pairs", s, fields)
		default:
			// Only zeros before a length are read and not written.
			if packed := wire.Pack(fields); packed != s && packed != withoutZeros(s) {
				t.Errorf("%q holds %q, which packs to %q", s, fields, packed)
			}
		}
		// Any fields at all come back.
		fields = strings.Split(s, ",")
		if len(fields)%2 != 0 {
			fields = append(fields, s)
		}
		if got, err := wire.Unpack(wire.Pack(fields)); err != nil || !slices.Equal(got, fields) {
			t.Errorf("%q came back as %q, %v", fields, got, err)
		}
	})
}

// withoutZeros rewrites the lengths of a sound parked value.
func withoutZeros(s string) string {
	out, rest := s[:1], s[1:]
	for rest != "" {
		length, after, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(length)
		if err != nil || n >= len(after) {
			return out
		}
		out += strconv.Itoa(n) + ":" + after[:n+1]
		rest = after[n+1:]
	}
	return out
}

var counters = regexp.MustCompile(`^[0-9]{1,9}$`)

// FuzzParse reads fields that are the lines of text, names and values by turns.
func FuzzParse(f *testing.F) {
	for _, c := range entryCases {
		f.Add(c.id, strings.Join(c.fields, "\n"))
	}
	f.Fuzz(func(t *testing.T, id, text string) {
		fields := strings.Split(text, "\n")
		kept := slices.Clone(fields)
		m := wire.Parse(id, fields)
		if !slices.Equal(m.Fields, kept) || m.EntryID != id {
			t.Fatalf("entry %q, fields %q", m.EntryID, m.Fields)
		}
		first := map[string]string{}
		var unknown [][2]string
		for i := 0; i+1 < len(fields); i += 2 {
			name, value := fields[i], fields[i+1]
			if _, had := first[name]; !had {
				first[name] = value
			}
			if !slices.Contains([]string{
				"body", "headers", "rc", "lost", "losses", "cut", "oid", "did", "from", "redriven", "due", "err", "reason",
			}, name) {
				unknown = append(unknown, [2]string{name, value})
			}
		}
		for name, got := range map[string]string{
			"body": m.Body, "headers": m.Headers, "did": m.DID, "from": m.From, "err": m.Err, "reason": m.Reason,
		} {
			if got != first[name] {
				t.Errorf("%s = %q; the first is %q", name, got, first[name])
			}
		}
		for name, got := range map[string]int{"rc": m.RC, "lost": m.Lost, "losses": m.Losses, "cut": m.Cut, "redriven": m.Redriven} {
			want := 0
			if counters.MatchString(first[name]) {
				want, _ = strconv.Atoi(first[name])
			}
			if got != want || got < 0 || got > wire.MaxCount {
				t.Errorf("%s = %d; it holds %q", name, got, first[name])
			}
		}
		if due, err := strconv.ParseUint(first["due"], 10, 63); err == nil && m.Due != int64(due) || err != nil && m.Due != 0 {
			t.Errorf("due = %d; it holds %q", m.Due, first["due"])
		}
		if _, had := first["body"]; m.HasBody != had {
			t.Errorf("HasBody = %v", m.HasBody)
		}
		want := first["oid"]
		if want == "" {
			want = id
		}
		if m.ID != want {
			t.Errorf("ID = %q; want %q", m.ID, want)
		}
		if got := wire.Unknown(fields); !slices.Equal(got, unknown) {
			t.Errorf("Unknown = %q; want %q", got, unknown)
		}
		if _, err := wire.Time(m.ID).MarshalJSON(); err != nil {
			t.Errorf("Time(%q): %v", m.ID, err)
		}
		wire.ParseHeaders(text) // does not panic
	})
}

// number is an entry id as one number of 128 bits; ok is false for what Redis would not write.
func number(id string) (n *big.Int, ok bool) {
	if !wire.IsEntryID(id) {
		return nil, false
	}
	high, low, _ := strings.Cut(id, "-")
	ms, err1 := strconv.ParseUint(high, 10, 64)
	seq, err2 := strconv.ParseUint(low, 10, 64)
	if err1 != nil || err2 != nil || entryID(ms, seq) != id {
		return nil, false
	}
	n = new(big.Int).SetUint64(ms)
	return n.Add(n.Lsh(n, 64), new(big.Int).SetUint64(seq)), true
}

func entryID(ms, seq uint64) string {
	return strconv.FormatUint(ms, 10) + "-" + strconv.FormatUint(seq, 10)
}

func FuzzCompareIDs(f *testing.F) {
	f.Add("9007199254740993-0", "9007199254740992-1", "18446744073709551615-18446744073709551615")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		ids := []string{a, b, c}
		for _, x := range ids {
			for _, y := range ids {
				got := wire.CompareIDs(x, y)
				if got != -wire.CompareIDs(y, x) || got < -1 || got > 1 || x == y && got != 0 {
					t.Errorf("CompareIDs(%q, %q) = %d, the other way round %d", x, y, got, wire.CompareIDs(y, x))
				}
				nx, okx := number(x)
				ny, oky := number(y)
				if okx && oky && got != nx.Cmp(ny) {
					t.Errorf("CompareIDs(%q, %q) = %d; want %d", x, y, got, nx.Cmp(ny))
				}
			}
		}
		// An order: sorted in any way, what is apart is in order too.
		slices.SortFunc(ids, wire.CompareIDs)
		if wire.CompareIDs(ids[0], ids[2]) > 0 {
			t.Errorf("%q are in no order", ids)
		}
	})
}
