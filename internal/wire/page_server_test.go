package wire_test

import (
	"bufio"
	"context"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/lua"
	"github.com/xstreamq/xstreamq/internal/redistest"
	"github.com/xstreamq/xstreamq/internal/wire"
)

// What docs/wire-format.md tells to send is sent here.

const publishing = "## Publish from any language"

// fieldsOf is the newest entry as flat fields, in order, as no map of the client has them.
func fieldsOf(t *testing.T, c *redis.Client, stream string) (id string, fields []string) {
	t.Helper()
	v, err := c.Do(context.Background(), "XREVRANGE", stream, "+", "-", "COUNT", "1").Slice()
	if err != nil || len(v) != 1 {
		t.Fatalf("newest entry of %s: %v, %v", stream, v, err)
	}
	entry, ok := v[0].([]any)
	if !ok || len(entry) != 2 {
		t.Fatalf("entry %v", v[0])
	}
	id, _ = entry[0].(string)
	return id, texts(entry[1])
}

func TestPageShellProducers(t *testing.T) {
	t.Parallel()
	c := redistest.Shared(t).Client(t)
	k := keys.NewStream(redistest.Prefix(t), "orders")
	var lines []string
	for _, b := range blocks(t, section(t, "# Wire format"), "sh") {
		lines = append(lines, strings.Split(strings.TrimSpace(b), "\n")...)
	}
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		words := shellWords(line)
		if words[0] != "redis-cli" || words[2] != "{orders}" {
			t.Fatalf("%q", words)
		}
		args := []any{words[1], k.Main}
		for _, w := range words[3:] {
			args = append(args, w)
		}
		id, err := c.Do(context.Background(), args...).Text()
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		entryID, fields := fieldsOf(t, c, k.Main)
		m := wire.Parse(entryID, fields)
		if id != m.ID || m.Body != `{"id":1}` || !slices.Equal(fields, words[4:]) {
			t.Errorf("%s stored %+v", line, m)
		}
		if m.Headers != "" && len(wire.ParseHeaders(m.Headers)) == 0 {
			t.Errorf("%s: headers %q are none", line, m.Headers)
		}
	}
}

// shellWords splits at blanks outside single quotes.
func shellWords(line string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`'([^']*)'|([^' ]+)`).FindAllStringSubmatch(line, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// The bytes are sent as they stand there: this test alone uses the stream {orders} without a prefix.
func TestPageProtocolBytes(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	text := blocks(t, section(t, publishing), "text")[0]
	if _, err := conn.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n"))); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	length, err := r.ReadString('\n')
	if err != nil || !strings.HasPrefix(length, "$") {
		t.Fatalf("answer %q, %v", length, err)
	}
	id, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	entryID, fields := fieldsOf(t, server.Client(t), "{orders}")
	if entryID != strings.TrimSpace(id) || !slices.Equal(fields, []string{"body", `{"id":1}`}) {
		t.Errorf("answer %q; entry %s holds %q", id, entryID, fields)
	}
}

func pageScripts(t *testing.T) (delayed, deduped string) {
	t.Helper()
	b := blocks(t, section(t, "### With a delay, or once only"), "lua")
	if len(b) != 2 {
		t.Fatalf("%d scripts", len(b))
	}
	return b[0], b[1]
}

func TestPageDelayedScript(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := redistest.Shared(t).Client(t)
	script, _ := pageScripts(t)
	g := keys.NewStream(redistest.Prefix(t), "orders").Group("svc")
	k := g.Stream
	fields := []string{"body", "a\x00\xff", "", "x", "oid", "mine"}
	const random = "00112233aabbccdd"

	before, err := c.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	id, err := c.Eval(ctx, script, []string{k.Due, k.Parked}, 60000, random, wire.Pack(fields)).Text()
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`^d-\d+-` + random + `(/2)?$`) // /2: both in one millisecond
	if !form.MatchString(id) {
		t.Errorf("id %s", id)
	}
	if at := wire.Time(id); at.Before(before.Truncate(time.Millisecond)) || at.After(before.Add(10*time.Second)) {
		t.Errorf("%s was published at %v, now is %v", id, at, before)
	}
	due, err := c.ZScore(ctx, k.Due, id).Result()
	if want := wire.Time(id).UnixMilli() + 60000; err != nil || int64(due) != want {
		t.Errorf("due at %v, %v; want %d", due, err, want)
	}
	// The library's own delayed publish leaves the same behind.
	own, _, err := lua.Publish(ctx, c, k, lua.Publication{Delay: time.Minute, Random: random, Fields: fields})
	if err != nil || !form.MatchString(own) {
		t.Fatalf("the library's id %q, %v", own, err)
	}
	parked := c.HMGet(ctx, k.Parked, id, own).Val()
	if parked[0] != wire.Pack(fields) || parked[1] != parked[0] {
		t.Errorf("parked %q and %q", parked[0], parked[1])
	}
	// And is promoted like one.
	if err := c.ZAdd(ctx, k.Due, redis.Z{Score: 1, Member: id}).Err(); err != nil {
		t.Fatal(err)
	}
	if p, err := lua.PromoteDelayed(ctx, c, g); err != nil || p.Moved != 1 {
		t.Fatalf("promoted %+v, %v", p, err)
	}
	entryID, got := fieldsOf(t, c, k.Main)
	if m := wire.Parse(entryID, got); m.ID != id || !slices.Equal(got, []string{"body", "a\x00\xff", "", "x", "oid", id, "due", "1"}) || !m.Born().Equal(time.UnixMilli(1)) {
		t.Errorf("promoted as %q", got)
	}
}

func TestPageDelayedScriptRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := redistest.Shared(t).Client(t)
	script, _ := pageScripts(t)
	k := keys.NewStream(redistest.Prefix(t), "orders")
	if err := c.Set(ctx, k.Due, "no sorted set", 0).Err(); err != nil {
		t.Fatal(err)
	}
	err := c.Eval(ctx, script, []string{k.Due, k.Parked}, 1, "0", wire.Pack([]string{"body", "x"})).Err()
	if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("error %v", err)
	}
	if n := c.Exists(ctx, k.Parked).Val(); n != 0 {
		t.Error("a value was left without a due time")
	}
}

func TestPageDedupeScript(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	c := redistest.Shared(t).Client(t)
	_, script := pageScripts(t)
	k := keys.NewStream(redistest.Prefix(t), "orders")
	fields := func(did string) []string { return []string{"body", "x", "did", did} }
	page := func(did string) string {
		v, err := c.Eval(ctx, script, []string{k.Main, k.Sent(did)}, 60000, "body", "x", "did", did).Slice()
		if err != nil {
			t.Fatal(err)
		}
		id, _ := v[0].(string)
		n, _ := v[1].(int64)
		return id + " " + strconv.FormatInt(n, 10)
	}
	own := func(did string) string {
		id, duplicate, err := lua.Publish(ctx, c, k, lua.Publication{DedupeID: did, Window: time.Minute, Fields: fields(did)})
		if err != nil {
			t.Fatal(err)
		}
		return id + map[bool]string{false: " 0", true: " 1"}[duplicate]
	}
	// One dedupe id for both: whoever is second hears of the first.
	first := page("o-1")
	entryID, got := fieldsOf(t, c, k.Main)
	if first != entryID+" 0" || !slices.Equal(got, fields("o-1")) {
		t.Errorf("%s; entry %s holds %q", first, entryID, got)
	}
	if again := page("o-1"); again != entryID+" 1" {
		t.Errorf("the page's script again: %s; want %s 1", again, entryID)
	}
	if again := own("o-1"); again != entryID+" 1" {
		t.Errorf("the library after it: %s; want %s 1", again, entryID)
	}
	second := own("o-2")
	if again := page("o-2"); again != strings.TrimSuffix(second, " 0")+" 1" {
		t.Errorf("the page's script after the library's %s: %s", second, again)
	}
	if n := c.XLen(ctx, k.Main).Val(); n != 2 {
		t.Errorf("%d entries", n)
	}
	if ttl := c.PTTL(ctx, k.Sent("o-1")).Val(); ttl <= 50*time.Second || ttl > time.Minute {
		t.Errorf("the marker lives for %v", ttl)
	}
	// Refused whole when the marker cannot be set: a window of 0.
	if err := c.Eval(ctx, script, []string{k.Main, k.Sent("o-3")}, 0, "body", "x").Err(); err == nil || c.XLen(ctx, k.Main).Val() != 2 {
		t.Errorf("without a marker: %v, %d entries", err, c.XLen(ctx, k.Main).Val())
	}
}

// The example of a lease record is one that scripts read and write.
func TestPageLeaseRecord(t *testing.T) {
	t.Parallel()
	c := redistest.Shared(t).Client(t)
	text := section(t, "## Records of the library")
	form := quoted(find(t, text, "\\*\\*Lease records\\*\\* \\(`[^`]*`\\): (`.*?`)")[0])[0]
	_, table, _ := strings.Cut(text, "**Lease records**")
	table, _, _ = strings.Cut(table, "For example")
	if got := firstColumn(t, table); strings.Join(got, "|") != form {
		t.Errorf("parts %q of %s", got, form)
	}
	example := find(t, text, "For example `([^`]*)`\\. A record")[0]
	v := texts(lib(t, c, "local l = lease(ARGV[1]) return {{int(l.vis), int(l.hb), l.ver, l.state, l.suspect}, record(l)}", example)[0])
	if strings.Join(v, "|") != example || strings.Count(form, "|") != len(v)-1 {
		t.Errorf("%s is read as %q", example, v)
	}
	other := lib(t, c, "local out = {} for i, r in ipairs(ARGV) do out[i] = lease(r).state end return out", "", "junk", "1|2|3", "x|1|v|live|", "1|-2|v|live|")
	for i, state := range other {
		if state != "foreign" {
			t.Errorf("record %d of another form is %v", i, state)
		}
	}
}
