package resp

import (
	"errors"
	"io"
	"net"
	"reflect"
	"testing"
	"time"
)

// peer answers the first bytes it gets with reply and tells what they were.
func peer(t *testing.T, want int, reply string) (addr string, got chan string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got = make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b := make([]byte, want)
		if _, err := io.ReadFull(c, b); err == nil {
			got <- string(b)
			_, _ = io.WriteString(c, reply) // whether it arrived is what the test looks at
		}
	}()
	return l.Addr().String(), got
}

func TestDo(t *testing.T) {
	t.Parallel()
	const ping = "*2\r\n$4\r\nPING\r\n$2\r\n\r\n\r\n"
	for _, c := range []struct {
		reply string
		want  any
		err   string
	}{
		{reply: "+PONG\r\n", want: "PONG"},
		{reply: ":-7\r\n", want: int64(-7)},
		{reply: "$4\r\na\r\nb\r\n", want: "a\r\nb"},
		{reply: "$0\r\n\r\n", want: ""},
		{reply: "$-1\r\n"},
		{reply: "*-1\r\n"},
		{reply: "*3\r\n:1\r\n*1\r\n+x\r\n-ERR inside\r\n", want: []any{int64(1), []any{"x"}, Error("ERR inside")}},
		{reply: "-OOM no\r\n", err: "OOM no"},
		{reply: "?x\r\n", err: `resp: reply "?x\r\n": strconv.ParseInt: parsing "x": invalid syntax`},
		{reply: "$4\r\nab", err: "resp: unexpected EOF"},
		{reply: "", err: "resp: EOF"},
	} {
		addr, got := peer(t, len(ping), c.reply)
		v, err := Once(addr, 5*time.Second, "PING", "\r\n")
		if text := <-got; text != ping {
			t.Errorf("sent %q, want %q", text, ping)
		}
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%q: %v, want %s", c.reply, err, c.err)
			}
			_, refused := errors.AsType[Error](err)
			if want := c.reply[:min(1, len(c.reply))] == "-"; refused != want {
				t.Errorf("%q: refused %v", c.reply, refused)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(v, c.want) {
			t.Errorf("%q: %#v, %v; want %#v", c.reply, v, err, c.want)
		}
	}
}

// A silent peer is given up when the time is over.
func TestDeadline(t *testing.T) {
	t.Parallel()
	addr, _ := peer(t, 1<<20, "")
	if _, err := Once(addr, 50*time.Millisecond, "PING"); err == nil {
		t.Error("an answer from nobody")
	} else if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
		t.Errorf("%v, want a timeout", err)
	}
}
