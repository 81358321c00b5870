package main

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/examples/internal/servers"
)

// Each group has every order, and one group's failures are no other's.
func TestFanOut(t *testing.T) {
	t.Parallel()
	opt, err := redis.ParseURL(servers.Redis(t))
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opt)
	defer func() { _ = rdb.Close() }()
	ctx, stop := context.WithCancel(t.Context())
	calls, ended := make(chan string, 10), make(chan error, 1)
	service := func(name string, err error) handler {
		return func(context.Context, *xstreamq.Message[Order]) error {
			calls <- name
			return err
		}
	}
	go func() {
		ended <- run(ctx, rdb, services{service("billing", nil), service("mail", errors.New("down")), service("search", nil)})
	}()
	got := map[string]int{}
	for range 4 {
		got[<-calls]++
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got["billing"] != 1 || got["search"] != 1 || got["mail"] != 2 || len(calls) > 0 {
		t.Errorf("handled %v", got)
	}
	if err := rdb.Ping(t.Context()).Err(); err != nil {
		t.Errorf("the borrowed client: %v", err)
	}
}
