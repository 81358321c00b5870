package conn

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/redistest"
)

type entry struct {
	stream, id string
	fields     []string
}

func taken(raw string) ([]entry, error) {
	var out []entry
	err := (&reply{raw: []byte(raw)}).streams(func(stream, id string, fields []string) { out = append(out, entry{stream, id, slices.Clone(fields)}) })
	return out, err
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

// written is how a server of either protocol tells of entries, each in a stream of its own.
func written(proto int, list []entry) string {
	out := fmt.Sprintf("*%d\r\n", len(list))
	if proto == 3 {
		out = fmt.Sprintf("%%%d\r\n", len(list))
	}
	for _, e := range list {
		if proto == 2 {
			out += "*2\r\n"
		}
		out += bulk(e.stream) + "*1\r\n*2\r\n" + bulk(e.id) + fmt.Sprintf("*%d\r\n", len(e.fields))
		for _, f := range e.fields {
			out += bulk(f)
		}
	}
	return out
}

func equal(a, b []entry) bool {
	return slices.EqualFunc(a, b, func(a, b entry) bool {
		return a.stream == b.stream && a.id == b.id && slices.Equal(a.fields, b.fields)
	})
}

// What servers of both protocols send is what was stored, whatever bytes it has; and it is what go-redis reads.
func TestEntries(t *testing.T) {
	t.Parallel()
	for proto := 2; proto <= 3; proto++ {
		t.Run(fmt.Sprintf("RESP%d", proto), func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr(), Protocol: proto})
			t.Cleanup(func() { _ = rdb.Close() })
			a, b := redistest.Prefix(t)+"{s}a", redistest.Prefix(t)+"{s}b"
			var want []entry
			for i := range 30 {
				e := entry{stream: []string{a, b}[i/20], fields: []string{"body", strings.Repeat("\r\n$1\x00\xff", i), "", "", "body", "*2\r\n"}}
				id, err := rdb.XAdd(t.Context(), &redis.XAddArgs{Stream: e.stream, Values: e.fields}).Result()
				if err != nil {
					t.Fatal(err)
				}
				e.id = id
				want = append(want, e)
			}
			for _, key := range []string{a, b} {
				if err := rdb.XGroupCreate(t.Context(), key, "g", "0").Err(); err != nil {
					t.Fatal(err)
				}
			}
			r := newReader(t, rdb, nil)
			var got []entry
			read := func(args ...any) error {
				return r.Entries(t.Context(), func(stream, id string, fields []string) { got = append(got, entry{stream, id, slices.Clone(fields)}) }, args...)
			}
			if err := read("xreadgroup", "group", "g", "c", "count", "100", "streams", a, b, ">", ">"); err != nil {
				t.Fatal(err)
			}
			if !equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			got = nil
			if err := read("xreadgroup", "group", "g", "c", "block", "1", "streams", a, b, ">", ">"); err != nil || len(got) != 0 {
				t.Errorf("a read of nothing: %q, %v", got, err)
			}
			// What is read again and is gone has no fields.
			if err := rdb.XDel(t.Context(), a, want[0].id).Err(); err != nil {
				t.Fatal(err)
			}
			if err := read("xreadgroup", "group", "g", "c", "count", "1", "streams", a, "0"); err != nil {
				t.Fatal(err)
			}
			if !equal(got, []entry{{stream: a, id: want[0].id}}) {
				t.Errorf("a deleted entry: %q", got)
			}
			// What the server refuses is its error, and the next read is sound.
			if err := read("xreadgroup", "group", "nosuch", "c", "streams", a, ">"); Code(err) != "NOGROUP" || !Refused(err) {
				t.Errorf("no group: %v", err)
			}
			if err := read("xreadgroup", "group", "g", "c", "streams", a, ">"); err != nil {
				t.Error(err)
			}
		})
	}
}

// What is no such reply is an error that shows it, and nothing is made up.
func TestEntriesOfNoReply(t *testing.T) {
	t.Parallel()
	one := written(2, []entry{{"s", "1-0", []string{"body", "x"}}})
	for _, raw := range []string{
		"", "*", "*1", "*1\r\n", "+OK\r\n", ":1\r\n", "$1\r\na\r\n", "*-2\r\n", "*99999999999999999999\r\n", "*1\r\n*3\r\n$1\r\ns\r\n*0\r\n*0\r\n",
		"%1\r\n$1\r\ns\r\n:1\r\n", "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*1\r\n$3\r\n1-0\r\n", "*1\r\n*2\r\n$9\r\ns\r\n*0\r\n", one + "x", one + one,
	} {
		if got, err := taken(raw); err == nil || Refused(err) || !strings.Contains(err.Error(), "unknown reply") || len(got) > 1 {
			t.Errorf("%q: %q, %v", raw, got, err)
		}
	}
	for _, raw := range []string{"*-1\r\n", "_\r\n", "*0\r\n", "%0\r\n", "$-1\r\n"} {
		if got, err := taken(raw); err != nil || len(got) != 0 {
			t.Errorf("%q: %q, %v", raw, got, err)
		}
	}
	var said Said
	if _, err := taken("-READONLY You can't write against a read only replica.\r\n"); !errors.As(err, &said) || Code(err) != "READONLY" {
		t.Errorf("%v", err)
	}
}

func FuzzEntries(f *testing.F) {
	f.Add("body,x,,", "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\na\r\n$0\r\n\r\n")
	f.Add("a", "%1\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n_\r\n")
	f.Fuzz(func(t *testing.T, text, raw string) {
		if list, err := taken(raw); err == nil { // what it takes is what is there
			for _, e := range list {
				for _, s := range append([]string{e.stream, e.id}, e.fields...) {
					if !strings.Contains(raw, s+"\r") {
						t.Errorf("%q is not in %q", s, raw)
					}
				}
			}
		}
		want := []entry{{"s", "1-0", strings.Split(text, ",")}, {raw, "2-0", nil}, {text, raw, []string{raw, ""}}}
		for proto := 2; proto <= 3; proto++ {
			if got, err := taken(written(proto, want)); err != nil || !equal(got, want) {
				t.Errorf("RESP%d: %q became %q, %v", proto, want, got, err)
			}
		}
	})
}
