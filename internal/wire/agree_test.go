package wire_test

import (
	"context"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// lib runs Lua behind what all scripts share: what is checked here are the very functions that they use.
func lib(t *testing.T, c redis.Cmdable, body string, args ...any) []any {
	t.Helper()
	text, err := os.ReadFile("../lua/scripts/lib.lua")
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.Eval(context.Background(), string(text)+body, nil, args...).Slice()
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

// tricky are bytes that are likely to be taken for something else.
var tricky = []string{"", "", "a", "0", "12:", ":", ",", "1:a,", "\x00", "\x01", "\xff\xfe", "\r\n", "body", "ü", strings.Repeat("y", 300)}

func randomFields(random *rand.Rand) []string {
	fields := make([]string, 2+2*random.IntN(5))
	for i := range fields {
		for range random.IntN(3) {
			fields[i] += tricky[random.IntN(len(tricky))]
		}
	}
	return fields
}

func TestPackAgreesWithLua(t *testing.T) {
	t.Parallel()
	c := redistest.Shared(t).Client(t)
	random := rand.New(rand.NewPCG(3, 4))
	all := [][]string{{"", ""}, {"a", strings.Repeat("\x00", 1<<20)}, slices.Repeat([]string{"k", "v"}, 3900)}
	for range 300 {
		all = append(all, randomFields(random))
	}
	for _, fields := range all {
		args := make([]any, len(fields))
		for i, f := range fields {
			args[i] = f
		}
		v := lib(t, c, "return {pack(ARGV)}", args...)
		if packed, ok := v[0].(string); !ok || packed != wire.Pack(fields) {
			t.Fatalf("%.200q: Lua packs %.200q, Go %.200q", fields, v[0], wire.Pack(fields))
		}
	}
	// And back: what the one packs, the other reads.
	args := make([]any, len(all))
	for i, fields := range all {
		args[i] = wire.Pack(fields)
	}
	for i, v := range lib(t, c, "local out = {} for i, v in ipairs(ARGV) do out[i] = unpacked(v) or 'malformed' end return out", args...) {
		if got := texts(v); !slices.Equal(got, all[i]) {
			t.Fatalf("Go packs %.200q, Lua reads %.200q", all[i], got)
		}
	}
}

func texts(v any) []string {
	list, _ := v.([]any)
	out := make([]string, len(list))
	for i := range list {
		out[i], _ = list[i].(string)
	}
	return out
}

// Go and Lua refuse the same values, and read the same in the others.
func TestUnpackAgreesWithLua(t *testing.T) {
	t.Parallel()
	c := redistest.Shared(t).Client(t)
	random := rand.New(rand.NewPCG(5, 6))
	values := []any{
		"", "\x01", "\x02" + "1:a,1:b,", "\x01" + "01:a,1:b,", "\x01" + "0000000001:a,1:b,", "\x01" + "00000000001:a,1:b,",
		"\x01" + "+1:a,1:b,", "\x01" + "1e0:a,1:b,", "\x01" + "0x1:a,1:b,", "\x01" + " 1:a,1:b,", "\x01" + ":,1:b,",
		"\x01" + "4294967295:a,1:b,", "\x01" + "4294967297:a,1:b,", "\x01" + "9999999999:a,1:b,", "\x01" + "1\x00:a,1:b,",
	}
	for len(values) < 3000 {
		v := []byte(wire.Pack(randomFields(random)))
		for range random.IntN(3) {
			switch at := random.IntN(len(v)); random.IntN(4) {
			case 0:
				v[at] = "0123456789:,x\x01"[random.IntN(14)]
			case 1:
				v = slices.Delete(v, at, at+1)
			case 2:
				v = slices.Insert(v, at, "0123456789:,x\x01"[random.IntN(14)])
			default:
				v = v[:at+1]
			}
			if len(v) == 0 {
				break
			}
		}
		values = append(values, string(v))
	}
	sound, malformed := 0, 0
	for i, v := range lib(t, c, "local out = {} for i, v in ipairs(ARGV) do out[i] = unpacked(v) or 'malformed' end return out", values...) {
		value, _ := values[i].(string)
		fields, err := wire.Unpack(value)
		if v == "malformed" {
			malformed++
		} else {
			sound++
		}
		if (v == "malformed") != (err != nil) || err == nil && !slices.Equal(texts(v), fields) {
			t.Errorf("%q: Lua reads %q, Go %q, %v", value, v, fields, err)
		}
	}
	if sound < 300 || malformed < 300 {
		t.Errorf("%d sound and %d malformed values: too few of one kind", sound, malformed)
	}
}

func randomNumber(random *rand.Rand) uint64 {
	edges := []uint64{
		0, 1, 9, 10, 99, 100, 1<<31 - 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<53 + 1, 1754000000000, 1<<63 - 1, 1 << 63,
		9999999999999999999, 10000000000000000000, 1<<64 - 2, 1<<64 - 1,
	}
	if random.IntN(2) == 0 {
		return edges[random.IntN(len(edges))]
	}
	return random.Uint64() >> random.IntN(64)
}

func TestIDsAgreeWithLua(t *testing.T) {
	t.Parallel()
	c := redistest.Shared(t).Client(t)
	random := rand.New(rand.NewPCG(7, 8))
	var ids []string
	for range 1000 {
		a, b := randomNumber(random), randomNumber(random)
		ids = append(ids, entryID(a, b), entryID(a, randomNumber(random)), entryID(a+1, b), entryID(a, b), entryID(a, b))
	}
	ids = append(ids, "0-0", "0-1", "1-0", "18446744073709551615-18446744073709551615")
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	// Each with the one before it.
	signs := lib(t, c, "local out = {} for i = 2, #ARGV do out[i - 1] = compare(ARGV[i - 1], ARGV[i]) end return out", args...)
	seen := map[int64]int{}
	for i, v := range signs {
		sign, _ := v.(int64)
		seen[sign]++
		if got := wire.CompareIDs(ids[i], ids[i+1]); int64(got) != sign {
			t.Errorf("CompareIDs(%s, %s) = %d; Lua says %d", ids[i], ids[i+1], got, sign)
		}
		a, _ := number(ids[i])
		b, _ := number(ids[i+1])
		if int64(a.Cmp(b)) != sign {
			t.Errorf("compare(%s, %s) = %d", ids[i], ids[i+1], sign)
		}
	}
	if seen[-1] < 100 || seen[0] < 100 || seen[1] < 100 {
		t.Errorf("less, equal, greater: %v: too few of one kind", seen)
	}
	near := lib(t, c, "local out = {} for i, id in ipairs(ARGV) do out[2 * i - 1], out[2 * i] = after(id) or '', before(id) end return out", args...)
	for i, id := range ids {
		n, _ := number(id)
		up, down := textOf(new(big.Int).Add(n, big.NewInt(1))), "0-0"
		if n.Sign() > 0 {
			down = textOf(new(big.Int).Sub(n, big.NewInt(1)))
		}
		if id == "18446744073709551615-18446744073709551615" {
			up = "" // behind it is nothing
		}
		if near[2*i] != up || near[2*i+1] != down {
			t.Errorf("%s: Lua says after %v, before %v; want %s, %s", id, near[2*i], near[2*i+1], up, down)
		}
	}
}

func textOf(n *big.Int) string {
	low := new(big.Int).SetUint64(1<<64 - 1)
	return new(big.Int).Rsh(n, 64).String() + "-" + low.And(low, n).String()
}

// The scripts and Parse read the same in an entry: counters, the stable id, the first of a name.
func TestParseAgreesWithLua(t *testing.T) {
	t.Parallel()
	c := redistest.Shared(t).Client(t)
	random := rand.New(rand.NewPCG(9, 10))
	names := []string{wire.RC, wire.Lost, wire.Losses, wire.Cut, wire.Redriven, wire.OID, wire.Body, "x", ""}
	junk := []string{
		"", "0", "1", "7", "000000007", "999999999", "1000000000", "1234567890123", "-1", "+1", " 1", "1 ", "1\n", "\n1", "1\x00", "\x00",
		"1.0", "1e3", "0x1", "nan", "inf", "٣", "1754000000000-0", "d-1754000000000-00112233aabbccdd",
	}
	all := make([][]string, 0, 2000+len(entryCases))
	for range 2000 {
		fields := make([]string, 0, 12)
		for range 1 + random.IntN(6) {
			fields = append(fields, names[random.IntN(len(names))], junk[random.IntN(len(junk))])
		}
		all = append(all, fields)
	}
	for _, e := range entryCases {
		if len(e.fields)%2 == 0 {
			all = append(all, e.fields)
		}
	}
	args := make([]any, len(all))
	for i, fields := range all {
		args[i] = wire.Pack(fields)
	}
	replies := lib(t, c, `local out = {}
for i, v in ipairs(ARGV) do
  local f = unpacked(v)
  local function n(name) return int(counter(field(f, name))) end
  out[i] = {stable(f, '5-5'), n('rc'), n('lost'), n('losses'), n('cut'), n('redriven'), field(f, 'body') and 'body' or 'none', field(f, 'body') or ''}
end
return out`, args...)
	for i, fields := range all {
		m := wire.Parse("5-5", fields)
		has := "none"
		if m.HasBody {
			has = "body"
		}
		want := []string{
			m.ID, strconv.Itoa(m.RC), strconv.Itoa(m.Lost), strconv.Itoa(m.Losses), strconv.Itoa(m.Cut), strconv.Itoa(m.Redriven), has, m.Body,
		}
		if got := texts(replies[i]); !slices.Equal(got, want) {
			t.Errorf("%q: Lua reads %q, Go %q", fields, got, want)
		}
	}
}

// Markers are named alike by this library and by scripts, which have SHA-1 too.
func TestMarkersAgreeWithLua(t *testing.T) {
	t.Parallel()
	c := redistest.Shared(t).Client(t)
	ids := []any{"o-1", "1754000000000-0", "\x00\xff", "größe", strings.Repeat("x", 200)}
	for i, v := range lib(t, c, "local out = {} for i, id in ipairs(ARGV) do out[i] = redis.sha1hex(id) end return out", ids...) {
		id, _ := ids[i].(string)
		sha, _ := v.(string)
		s := keys.NewStream("", "orders")
		if got := s.Sent(id); got != "{orders}.sent:"+sha {
			t.Errorf("sent marker of %q: %s; Lua says %s", id, got, sha)
		}
		if got := s.Group("svc").Seen(id); got != "{orders}.svc.seen:"+sha {
			t.Errorf("seen marker of %q: %s; Lua says %s", id, got, sha)
		}
	}
}
