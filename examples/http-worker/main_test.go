package main

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

func TestSignup(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	mails, ended := make(chan string, 10), make(chan error, 1)
	go func() {
		ended <- run(ctx, servers.Redis(t), l, func(_ context.Context, to string) error {
			mails <- to
			return nil
		})
	}()
	for _, c := range []struct {
		body string
		want int
	}{
		{`{"email":"ann@example.com"}`, http.StatusAccepted},
		{`{"email":"ann@example.com"}`, http.StatusOK}, // a repeated request is one message
		{`{"email":""}`, http.StatusUnprocessableEntity},
		{`nonsense`, http.StatusBadRequest},
	} {
		resp, err := http.Post("http://"+l.Addr().String()+"/signup", "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", c.body, resp.Status, c.want)
		}
	}
	if to := <-mails; to != "ann@example.com" {
		t.Errorf("a mail to %s", to)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("a clean deploy ends with %v", err)
	}
	if len(mails) > 0 {
		t.Errorf("a second mail to %s", <-mails)
	}
}
