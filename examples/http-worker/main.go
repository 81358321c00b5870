// An HTTP service that publishes, and the worker of the same queue, in one process. A deploy loses nothing:
// readiness goes red, HTTP requests end, handlers drain, whatever is left goes back to Redis.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/otelxstreamq"
)

// Signup is a message. Validate runs before a publish and before a handler.
type Signup struct {
	Email string `json:"email"`
}

// Validate refuses what nobody could mail to.
func (s *Signup) Validate() error {
	if s.Email == "" {
		return errors.New("email is empty")
	}
	return nil
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", cmp.Or(os.Getenv("LISTEN"), "localhost:8080"))
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"), l, mail); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, redisURL string, l net.Listener, mail func(context.Context, string) error) error {
	client, err := xstreamq.Open(redisURL,
		xstreamq.WithHooks(otelxstreamq.Hooks()),
		xstreamq.DrainTimeout(25*time.Second), // below the pod's terminationGracePeriodSeconds
		xstreamq.SubscribeDefaults(xstreamq.WithMiddleware(logged)),
	)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // Run has drained
	signups := xstreamq.NewQueue[Signup](client, "signups")
	if _, err := signups.Subscribe("mailer", welcome(mail), xstreamq.MaxRetries(8), xstreamq.Concurrency(16)); err != nil {
		return err
	}

	mux := http.NewServeMux()
	mux.Handle("GET /readyz", client.ReadyHandler())
	mux.Handle("GET /livez", client.LiveHandler())
	mux.HandleFunc("POST /signup", signup(signups))
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return client.Run(gctx) })
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-gctx.Done()
		sctx, cancel := context.WithTimeout(context.WithoutCancel(gctx), 10*time.Second)
		defer cancel()
		return srv.Shutdown(sctx) // requests still publish while Run drains: Publish works until Close
	})
	return g.Wait() // nil after a clean deploy
}

func signup(signups *xstreamq.Queue[Signup]) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var s Signup
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var opts []xstreamq.PublishOption
		if s.Email != "" {
			opts = append(opts, xstreamq.DedupeID(s.Email))
		}
		p, err := signups.Publish(r.Context(), s, opts...)
		switch {
		case errors.Is(err, xstreamq.ErrInvalidBody):
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		case errors.Is(err, xstreamq.ErrUncertain): // with a dedupe id the caller may simply repeat
			http.Error(w, "please retry", http.StatusServiceUnavailable)
		case err != nil:
			http.Error(w, "queue unavailable", http.StatusServiceUnavailable)
		case p.Duplicate:
			w.WriteHeader(http.StatusOK)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}
}

var errNoSuchUser, errRateLimited = errors.New("no such user"), errors.New("rate limited")

func welcome(mail func(context.Context, string) error) func(context.Context, *xstreamq.Message[Signup]) error {
	return func(ctx context.Context, m *xstreamq.Message[Signup]) error {
		switch err := mail(ctx, m.Body.Email); {
		case errors.Is(err, errNoSuchUser):
			return xstreamq.Reject(err)
		case errors.Is(err, errRateLimited):
			return xstreamq.Snooze(time.Minute) // not the message's fault: no attempt spent
		default:
			return err
		}
	}
}

func logged(next xstreamq.Handler) xstreamq.Handler {
	return func(ctx context.Context, d *xstreamq.Delivery) error {
		err := next(ctx, d)
		slog.InfoContext(ctx, "handled", "stream", d.Stream, "id", d.ID, "attempt", d.Attempt, "err", err)
		return err
	}
}

func mail(_ context.Context, to string) error {
	slog.Info("welcome", "to", to)
	return nil
}
