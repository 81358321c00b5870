package wire_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/xstreamq/xstreamq/internal/wire"
)

func TestParseKeepsFields(t *testing.T) {
	t.Parallel()
	fields := []string{"z", "\x00", "body", "x", "", "", "z", "2", "oid", "1-0"}
	m := wire.Parse("2-0", fields)
	if &m.Fields[0] != &fields[0] || len(m.Fields) != len(fields) {
		t.Errorf("Fields = %q", m.Fields)
	}
	if m.EntryID != "2-0" || m.ID != "1-0" {
		t.Errorf("entry id %q, id %q", m.EntryID, m.ID)
	}
}

// A deleted entry comes without fields.
func TestParseNothing(t *testing.T) {
	t.Parallel()
	m := wire.Parse("1-0", nil)
	if m.ID != "1-0" || m.HasBody || m.Fields != nil || wire.Unknown(m.Fields) != nil {
		t.Errorf("%+v", m)
	}
}

func TestParseHeaders(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                      `null`,
		`{}`:                    `{}`,
		` {"a" : "b"} `:         `{"a":"b"}`, //nolint:gocritic // the blanks are the point
		`{"a":"b","a":"c"}`:     `{"a":"c"}`,
		`{"a":"b"`:              `null`,
		`{"a":"b"}x`:            `null`,
		`{"a":"b","c":1}`:       `null`,
		`{"a":["b"]}`:           `null`,
		`{"a":null}`:            `{"a":""}`,
		`["a"]`:                 `null`,
		`"a"`:                   `null`,
		`null`:                  `null`,
		"{\"a\":\"\\u0000\"}":   `{"a":"\u0000"}`,
		"{\"a\":\"\xff\"}":      "{\"a\":\"\ufffd\"}",
		`{"a":"b"}{"a":"b"}`:    `null`,
		strings.Repeat("[", 99): `null`,
	} {
		got, err := json.Marshal(wire.ParseHeaders(text))
		if err != nil || string(got) != want {
			t.Errorf("ParseHeaders(%q) = %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1754000000123).UTC()
	for id, want := range map[string]time.Time{
		"1754000000123-0":                    at,
		"1754000000123-18446744073709551615": at,
		"d-1754000000123-00112233aabbccdd":   at,
		"d-1754000000123-0011223344556677/2": at,
		"1754000000123":                      at,
		"":                                   {},
		"d-":                                 {},
		"-":                                  {},
		"0-1":                                {},
		"-5-0":                               {},
		"d--5-0":                             {},
		"order-7":                            {},
		"18446744073709551615-0":             {},
	} {
		if got := wire.Time(id); !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("Time(%q) = %v; want %v", id, got, want)
		}
	}
}

// An entry with an id far ahead must not break what prints it: JSON has no year over 9999.
func TestTimeIsPrintable(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"253402300799999-0", "253402300800000-0", "9223372036854775807-0", "d-9223372036854775807-0", "1-0"} {
		if _, err := wire.Time(id).MarshalJSON(); err != nil {
			t.Errorf("Time(%q): %v", id, err)
		}
	}
	if last := time.UnixMilli(253402300799999); !wire.Time("253402300799999-0").Equal(last) {
		t.Errorf("the last time that JSON can hold: %v", wire.Time("253402300799999-0"))
	}
}

func TestIsEntryID(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"0-0": true, "1754000000000-12": true, "18446744073709551615-18446744073709551615": true,
		"": false, "1": false, "1-": false, "-1": false, "1-1-1": false, "d-1-00": false, "m/1-0": false, "1-a": false,
		" 1-0":  false, //nolint:gocritic // the blank is the point
		"1-0\n": false, "+1-0": false, "123456789012345678901-0": false, "0-123456789012345678901": false, "$": false, "٣-0": false,
	} {
		if got := wire.IsEntryID(s); got != want {
			t.Errorf("IsEntryID(%q) = %v", s, got)
		}
	}
}

func TestErrorText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", wire.MaxError)
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"no route", "no route"},
		{long, long},
		{long + "y", long},
		{long[1:] + "ü", long[1:]},
		{long[2:] + "ü", long[2:] + "ü"},
		{long[3:] + "😀", long[3:]},
		{long[4:] + "😀x", long[4:] + "😀"},
		{"\xff" + long, "\xff" + long[1:]},
	} {
		got := wire.ErrorText(c.in)
		if got != c.want {
			t.Errorf("ErrorText of %d bytes …%q = %d bytes …%q", len(c.in), tail(c.in), len(got), tail(got))
		}
	}
	// What is no text is still cut, and near the limit.
	if got := wire.ErrorText(strings.Repeat("\x80", 5000)); len(got) > wire.MaxError || len(got) < wire.MaxError-utf8.UTFMax {
		t.Errorf("%d bytes are kept", len(got))
	}
}

func tail(s string) string { return s[max(0, len(s)-8):] }
