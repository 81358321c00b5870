package chaos

import (
	"reflect"
	"testing"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

func TestReadsServer(t *testing.T) {
	t.Parallel()
	srv, err := server.Start(t.TempDir(), "--appendonly", "no")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Kill(); err != nil {
			t.Error(err)
		}
	})
	do := func(args ...string) {
		t.Helper()
		if _, err := srv.Do(args...); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	do("XADD", "{s}.g.dlq", "1-1", "body", "b", "own", "\x00\r\n", "rc", "4", "oid", "0-5", "err", "e", "reason", "retries")
	do("XADD", "{s}.g.dlq", "1-2", "body", "c", "oid", "0-6", "lost", "11", "losses", "12", "reason", "lost")
	c, err := resp.Dial(srv.Addr(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := letters(c, "s", "g")
	want := []ledger.Letter{
		{EntryID: "1-1", ID: "0-5", RC: 4, Reason: "retries", Fields: []string{"body", "b", "own", "\x00\r\n"}},
		{EntryID: "1-2", ID: "0-6", Lost: 11, Losses: 12, Reason: "lost", Fields: []string{"body", "c"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	do("XADD", "{s}.g.dlq", "1-3", "oid", "0-7", "rc", "many")
	if _, err := letters(c, "s", "g"); err == nil {
		t.Error("a counter that is no number was read")
	}

	for _, key := range []string{"{s}", "{s}.g.retry"} {
		do("XGROUP", "CREATE", key, "g", "0", "MKSTREAM")
		do("XADD", key, "*", "body", "1")
		do("XADD", key, "*", "body", "2")
		do("XREADGROUP", "GROUP", "g", "1.1~aa", "COUNT", "1", "STREAMS", key, ">")
	}
	do("XREADGROUP", "GROUP", "g", "1.1~bb", "STREAMS", "{s}", ">")
	do("XREADGROUP", "GROUP", "g", "1.10~cc", "STREAMS", "{s}.g.retry", ">")
	for prefix, want := range map[string]int64{"1.1": 3, "1.10": 1, "1": 0, "2.1": 0} {
		if n := heldBy(srv.Addr(), "s", "g", prefix); n != want {
			t.Errorf("%d held by %s, want %d", n, prefix, want)
		}
	}
	do("XADD", "{orders}", "1-1", "body", "b")
	do("XGROUP", "CREATE", "{orders}", "svc", "0", "MKSTREAM")
	do("XGROUP", "CREATE", "{orders}.svc.retry", "svc", "0", "MKSTREAM")
	do("XGROUP", "CREATECONSUMER", "{orders}.svc.retry", "svc", "1.1~aa")
	do("HSET", "{orders}.svc.workers", "1.1~aa", "r", "1.1~bb", "r")
	for _, marker := range []string{"svc.seen:aa", "svc.seen:bb", "svc.seen:cc", "sent:aa", "sent:bb"} {
		do("SET", "{orders}."+marker, "1")
	}
	do("SADD", "xstreamq:registry", "x")
	left, err := remains(srv.Addr())
	if err != nil || left.Consumers != 1 || left.Records != 2 || left.Conns != 1 || len(left.Unknown) != 4 {
		t.Errorf("remains %+v, %v; want 1 consumer, 2 records, 1 connection, the 3 keys of the other stream, and .sent:* as the unknown", left, err)
	}
	if want := map[string]int{"{orders}.svc.seen:*": 3, "{orders}.sent:*": 2}; !reflect.DeepEqual(left.Markers, want) || len(left.Keys) != 9 {
		t.Errorf("markers %v of the keys %q, want %v, and each pattern once", left.Markers, left.Keys, want)
	}
	if n := heldBy(srv.Addr(), "s", "nobody", "1"); n != -1 {
		t.Errorf("%d held in no group, want -1: unknown", n)
	}
}
