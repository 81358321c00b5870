package lua

import (
	"slices"
	"strconv"
	"strings"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// given makes a state from lines as state writes them. Beyond those, "main: 1-0 !" is an entry that was deleted while it
// was pending, and "k = text" with the name of any key makes it a string.
func (b *bench) given(text string) {
	key := map[string]string{}
	for _, n := range b.names() {
		key[n.name] = n.key
	}
	var deleted, ends [][]any
	list := lines(text)
	for _, l := range list {
		head, rest, ok := strings.Cut(l, ": ")
		name, of, grouped := strings.Cut(head, " @")
		rest = strings.TrimSpace(rest)
		switch {
		case !ok && strings.HasSuffix(l, ":"): // a consumer that holds nothing
			name, of, _ := strings.Cut(strings.TrimSuffix(l, ":"), " @")
			group, consumer, _ := strings.Cut(of, " ")
			b.do("XGROUP", "CREATECONSUMER", key[name], group, consumer)
		case !ok:
			b.givenString(l)
		case grouped && strings.HasPrefix(rest, "at "):
			b.do("XGROUP", "CREATE", key[name], of, "0", "MKSTREAM")
			ends = append(ends, []any{"XGROUP", "SETID", key[name], of, instants(rest[3:])})
		case grouped:
			group, consumer, _ := strings.Cut(of, " ")
			for id := range strings.FieldsSeq(instants(rest)) {
				b.do("XCLAIM", key[name], group, consumer, 0, id, "FORCE", "JUSTID")
			}
		case name == "main" || name == "retry" || name == "dlq":
			id, fields, _ := strings.Cut(rest, " ")
			id = instants(id)
			if fields == "!" {
				fields = "body=deleted"
				deleted = append(deleted, []any{"XDEL", key[name], id})
			}
			b.add(key[name], id, tokens(fields)...)
		default:
			field, value, _ := strings.Cut(rest, " = ")
			field = read(field)
			switch {
			case name == "due" || name == "sdue":
				b.do("ZADD", key[name], instants(value), field)
			case (name == "parked" || name == "sparked") && strings.HasPrefix(value, "raw "):
				b.do("HSET", key[name], field, read(value[4:]))
			case name == "parked" || name == "sparked":
				b.do("HSET", key[name], field, wire.Pack(tokens(value)))
			default:
				b.do("HSET", key[name], field, instants(read(value)))
			}
		}
	}
	for _, cmd := range slices.Concat(ends, deleted) {
		b.do(cmd...)
	}
	b.last = b.state()
}

func (b *bench) givenString(l string) {
	name, value, _ := strings.Cut(l, " = ")
	kind, id, _ := strings.Cut(name, " ")
	key := ""
	switch kind {
	case "seen":
		b.seen = append(b.seen, id)
		key = b.k.Seen(id)
	case "sent":
		b.sent = append(b.sent, id)
		key = b.k.Sent(id)
	default:
		for _, n := range b.names() {
			if n.name == name {
				key = n.key
			}
		}
	}
	if key == "" {
		b.fatalf("no key for %q", l)
	}
	b.do("SET", key, read(instants(value)))
}

func (b *bench) add(key, id string, fields ...string) string {
	args := []any{"XADD", key, id}
	for _, f := range fields {
		args = append(args, f)
	}
	return b.do(args...).(string)
}

// tokens reads fields as showFields writes them.
func tokens(s string) []string {
	var out []string
	for s != "" {
		for _, end := range []string{"=", " "} {
			token := s
			if q, err := strconv.QuotedPrefix(s); err == nil {
				token = q
			} else if i := strings.Index(s, end); i >= 0 {
				token = s[:i]
			}
			out = append(out, read(token))
			s = strings.TrimPrefix(s[len(token):], end)
		}
		s = strings.TrimLeft(s, " ")
	}
	return out
}

func read(s string) string {
	if u, err := strconv.Unquote(s); err == nil {
		return u
	}
	return s
}
