package lua

import (
	"crypto/sha1"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/wire"
)

// The state of a stream and its group as text, a line an entry, a group, a consumer or a field:
//
//	main: 1-0 body=a             an entry; new ids are *, those of a later time T+ms-seq
//	main @g: at 1-0              a group's last delivered id
//	main @g c: 1-0 2-0           what a consumer has pending
//	parked: m/1-0 = body=a rc=1  a packed value
//	due: m/1-0 = T+500           a score
//	workers: c = 30000|T|v|live|
//	seen 1-0 = 1 px              a marker that expires
type namedKey struct{ name, key string }

func (b *bench) names() []namedKey {
	k := b.k
	list := []namedKey{
		{"main", k.Main},
		{"retry", k.Retry},
		{"dlq", k.DLQ},
		{"due", k.Due},
		{"parked", k.Parked},
		{"sdue", k.Stream.Due},
		{"sparked", k.Stream.Parked},
		{"workers", k.Workers},
		{"groups", k.Groups},
		{"meta", k.Stream.Meta},
		{"gmeta", k.Meta},
		{"paused", k.Paused},
	}
	for _, id := range b.seen {
		list = append(list, namedKey{"seen " + id, k.Seen(id)})
	}
	for _, id := range b.sent {
		list = append(list, namedKey{"sent " + id, k.Sent(id)})
	}
	return list
}

// state reads all keys, whole.
func (b *bench) state() []string {
	list := b.names()
	kinds := make([]*redis.StatusCmd, len(list))
	reads := make([]*redis.Cmd, len(list))
	ttls := make([]*redis.DurationCmd, len(list))
	_, err := b.c.Pipelined(b.ctx, func(p redis.Pipeliner) error {
		for i, n := range list {
			kinds[i] = p.Type(b.ctx, n.key)
			ttls[i] = p.PTTL(b.ctx, n.key)
		}
		return nil
	})
	b.must(err)
	_, err = b.c.Pipelined(b.ctx, func(p redis.Pipeliner) error {
		for i, n := range list {
			switch kinds[i].Val() {
			case "stream":
				reads[i] = p.Do(b.ctx, "XINFO", "STREAM", n.key, "FULL", "COUNT", 0)
			case "hash":
				reads[i] = p.Do(b.ctx, "HGETALL", n.key)
			case "zset":
				reads[i] = p.Do(b.ctx, "ZRANGE", n.key, 0, -1, "WITHSCORES")
			case "string":
				reads[i] = p.Do(b.ctx, "GET", n.key)
			}
		}
		return nil
	})
	b.must(err)
	var out []string
	for i, n := range list {
		if reads[i] == nil {
			continue
		}
		v := reads[i].Val()
		switch kinds[i].Val() {
		case "stream":
			out = append(out, streamLines(n.name, v)...)
		case "hash":
			var part []string
			for f, v := range v.(map[any]any) {
				part = append(part, fmt.Sprintf("%s: %s = %s", n.name, show(f.(string)), showValue(n.name, v.(string))))
			}
			slices.Sort(part)
			out = append(out, part...)
		case "zset":
			for _, p := range v.([]any) {
				pair := p.([]any)
				out = append(out, fmt.Sprintf("%s: %s = %s", n.name, show(pair[0].(string)), strconv.FormatFloat(pair[1].(float64), 'f', -1, 64)))
			}
		default:
			line := n.name + " = " + show(v.(string))
			if ttls[i].Val() > 0 {
				line += " px"
			}
			out = append(out, line)
		}
	}
	for i := range out {
		out[i] = moments(out[i])
	}
	return out
}

func streamLines(name string, v any) []string {
	var out []string
	info := v.(map[any]any)
	for _, e := range info["entries"].([]any) {
		pair := e.([]any)
		out = append(out, name+": "+pair[0].(string)+" "+showFields(texts(pair[1].([]any))))
	}
	for _, x := range info["groups"].([]any) {
		g := x.(map[any]any)
		at := name + " @" + g["name"].(string)
		out = append(out, at+": at "+g["last-delivered-id"].(string))
		held := map[string][]string{}
		for _, c := range g["consumers"].([]any) {
			held[c.(map[any]any)["name"].(string)] = nil
		}
		for _, p := range g["pending"].([]any) {
			pair := p.([]any)
			c := pair[1].(string)
			held[c] = append(held[c], pair[0].(string))
		}
		var part []string
		for c, ids := range held {
			part = append(part, strings.TrimSpace(at+" "+c+": "+strings.Join(ids, " ")))
		}
		slices.Sort(part)
		out = append(out, part...)
	}
	return out
}

func showValue(key, v string) string {
	if key != "parked" && key != "sparked" {
		return show(v)
	}
	f, err := wire.Unpack(v)
	if err != nil {
		return "raw " + show(v)
	}
	return showFields(f)
}

func showFields(f []string) string {
	if len(f) > 100 {
		return fmt.Sprintf("<%d fields %x>", len(f)/2, sha1.Sum([]byte(wire.Pack(f))))
	}
	var out []string
	for i := 0; i+1 < len(f); i += 2 {
		out = append(out, show(f[i])+"="+show(f[i+1]))
	}
	return strings.Join(out, " ")
}

func show(s string) string {
	if len(s) > 300 {
		return fmt.Sprintf("<%d bytes %x>", len(s), sha1.Sum([]byte(s)))
	}
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '"' || c == '=' {
			return strconv.Quote(s)
		}
	}
	if s == "" {
		return `""`
	}
	return s
}

var (
	newID   = regexp.MustCompile(`\b(1[6-9]|2\d)\d{11}-\d+\b`)
	benchMS = regexp.MustCompile(`\b(1000\d{9}|99\d{10})\b`)
	moment  = regexp.MustCompile(`\bT([+-]\d+)?`)
)

// moments writes times as they relate to the epoch, and ids that the server made as *.
func moments(s string) string {
	s = newID.ReplaceAllString(s, "*")
	return benchMS.ReplaceAllStringFunc(s, func(ms string) string {
		n, _ := strconv.ParseInt(ms, 10, 64)
		if n == epoch {
			return "T"
		}
		return fmt.Sprintf("T%+d", n-epoch)
	})
}

// instants is moments backwards.
func instants(s string) string {
	return moment.ReplaceAllStringFunc(s, func(m string) string {
		n, _ := strconv.ParseInt(m[1:], 10, 64)
		return strconv.FormatInt(epoch+n, 10)
	})
}
