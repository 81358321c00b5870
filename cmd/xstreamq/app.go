package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/term"

	"github.com/xstreamq/xstreamq"
)

// app is what every command gets: the streams, the environment and the global flags. Tests make one of buffers.
type app struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string

	inTTY, outTTY, errTTY bool
	width                 int // of the terminal on out

	url          string
	passwordFile string
	prefix       string
	timeout      time.Duration
	json         bool
	yes          bool
	noColor      bool

	secrets []string // never to appear in anything printed
}

func newApp(in, out, err *os.File) *app {
	a := &app{
		in: in, out: pipeWriter{out}, err: err, getenv: os.Getenv,
		inTTY: isTerminal(in), outTTY: isTerminal(out), errTTY: isTerminal(err),
	}
	if a.outTTY {
		if w, _, e := term.GetSize(int(out.Fd())); e == nil {
			a.width = w
		}
	}
	redis.SetLogger(silence{}) // go-redis prints pool trouble by itself; we report what matters as the error
	return a
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// errPipe says that nobody reads our stdout any more. It is not syscall.EPIPE itself: a network write may end so too.
var errPipe = errors.New("stdout is closed")

type pipeWriter struct{ w io.Writer }

func (p pipeWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = errPipe
	}
	return n, err
}

// execute runs one command line and returns the process's exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	err := root.ExecuteContext(ctx)
	return a.report(err, args)
}

// open makes the client that the global flags describe. It does no I/O beyond reading the password file.
func (a *app) open(opts ...xstreamq.ClientOption) (*xstreamq.Client, error) {
	if a.timeout <= 0 {
		return nil, usagef("--timeout is %s: it must be above 0", a.timeout)
	}
	password, err := a.password()
	if err != nil {
		return nil, err
	}
	a.secrets = append(urlSecrets(a.url), password)
	all := []xstreamq.ClientOption{
		xstreamq.PublishTimeout(a.timeout),
		xstreamq.WithLogger(slog.New(slog.DiscardHandler)),
		xstreamq.RedisOptions(func(o *redis.UniversalOptions) {
			if password != "" {
				o.Password = password
			}
			// A smaller --timeout must also bound the calls that go-redis times by itself.
			if a.timeout < 5*time.Second {
				o.DialTimeout = a.timeout
			}
		}),
	}
	if a.prefix != "" {
		all = append(all, xstreamq.Prefix(a.prefix))
	}
	c, err := xstreamq.Open(a.url, append(all, opts...)...)
	if err != nil {
		return nil, a.openError(err)
	}
	return c, nil
}

// call bounds one call to the server by --timeout.
func (a *app) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, a.timeout)
}

// admin runs do, as one call, on a client of its own.
func (a *app) admin(ctx context.Context, do func(context.Context, *xstreamq.Admin) error) (err error) {
	c, err := a.open()
	if err != nil {
		return err
	}
	defer closeClient(c, &err)
	ctx, cancel := a.call(ctx)
	defer cancel()
	return do(ctx, c.Admin())
}

func closeClient(c *xstreamq.Client, err *error) {
	if e := c.Close(); e != nil && *err == nil {
		*err = fmt.Errorf("closing the connection: %w", e)
	}
}

// note prints a line for people on stderr; with --json stderr carries errors only.
func (a *app) note(format string, args ...any) {
	if !a.json {
		fmt.Fprintln(a.err, escape(fmt.Sprintf(format, args...)))
	}
}

// done says in one line, or in JSON, what a command did.
func (a *app) done(v any, format string, args ...any) error {
	if a.json {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintln(a.out, escape(fmt.Sprintf(format, args...)))
	return err
}
