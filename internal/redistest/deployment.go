//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Deployment is several servers that a client sees as one Redis.
type Deployment struct {
	Servers []*Server // those that hold data; any may be asked by a client of its own
	url     string
	options redis.UniversalOptions
	watcher *Server // the Sentinel, if there is one
}

// URL is what xstreamq.Open takes.
func (d *Deployment) URL() string { return d.url }

// Options make a client of the whole.
func (d *Deployment) Options() *redis.UniversalOptions { o := d.options; return &o }

// Client is a new client of the whole, closed when the test ends.
func (d *Deployment) Client(t testing.TB) redis.UniversalClient {
	t.Helper()
	c := redis.NewUniversalClient(d.Options())
	t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
			t.Errorf("redistest: close a client of %s: %v", d.url, err)
		}
	})
	return c
}

func (d *Deployment) remove() {
	if d.watcher != nil {
		d.watcher.remove() // first: it must see nobody die
	}
	for _, s := range d.Servers {
		s.remove()
	}
}

// own gives the deployment to a test.
func own(t testing.TB, begin func() (*Deployment, error)) *Deployment {
	t.Helper()
	d, err := begin()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.remove)
	return d
}

// until asks every few milliseconds.
func until(within time.Duration, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("redistest: %s, not within %v: %w", what, within, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// asked runs f with a client of the server.
func (s *Server) asked(f func(*redis.Client) error) error {
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	defer func() { _ = c.Close() }() // what it was for is done
	return f(c)
}
