package xstreamq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq/internal/conn"
	"github.com/xstreamq/xstreamq/internal/engine"
	"github.com/xstreamq/xstreamq/internal/keys"
)

// Client holds connections, subscriptions and background loops. Safe for concurrent use. The zero value answers ErrClosed.
type Client struct {
	rdb       redis.UniversalClient
	owned     bool
	prefix    string
	cfg       clientConfig
	log       *slog.Logger
	hooks     hookSet
	publisher *publisher
	gate      *engine.Gate // nil = no cap on handlers

	mu      sync.Mutex
	phase   phase
	subs    map[GroupRef]*Subscription
	base    context.Context //nolint:containedctx // what handlers' contexts are made from, given to Run or Start
	drained chan struct{}   // closed when Stop is through
	failed  chan error      // what no waiting mends, of a subscription
	drain   error           // what Stop came to

	probing probing
}

// phase is where a client stands in its life.
type phase int

const (
	fresh phase = iota
	running
	stopping
	stopped
	closed
)

// Open parses a URL and owns what it opens. It does no I/O (as sql.Open). Schemes: redis, rediss and unix; with +sentinel or
// +cluster behind redis or rediss for those. Errors: ErrInvalidOption, ErrInvalidName.
func Open(rawURL string, opts ...ClientOption) (*Client, error) {
	cfg, err := newClientConfig(opts)
	if err != nil {
		return nil, err
	}
	uni, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	uni.ContextTimeoutEnabled = true
	for _, f := range cfg.redis {
		f(uni)
	}
	c := newClient(redis.NewUniversalClient(uni), cfg)
	if err := conn.Check(c.rdb); err != nil {
		_ = c.rdb.Close() // it never connected
		return nil, fmt.Errorf("%w: RedisOptions: %w", ErrInvalidOption, err)
	}
	c.owned = true
	return c, nil
}

// New borrows rdb and never closes it; blocking reads get connections of their own, made from rdb's options.
// A *redis.Client or *redis.ClusterClient is needed for that: a Ring, a wrapper or nil is ErrInvalidOption.
func New(rdb redis.UniversalClient, opts ...ClientOption) (*Client, error) {
	cfg, err := newClientConfig(opts)
	if err != nil {
		return nil, err
	}
	if err := conn.Check(rdb); err != nil {
		return nil, fmt.Errorf("%w: New: %w", ErrInvalidOption, err)
	}
	if len(cfg.redis) > 0 {
		return nil, fmt.Errorf("%w: RedisOptions is for Open; a borrowed client has its own options", ErrInvalidOption)
	}
	return newClient(rdb, cfg), nil
}

func newClientConfig(opts []ClientOption) (clientConfig, error) {
	cfg := clientConfig{drain: 30 * time.Second, publishTimeout: 10 * time.Second, interval: time.Second}
	if err := apply(&cfg, opts); err != nil {
		return cfg, err
	}
	if cfg.log == nil {
		cfg.log = slog.Default()
	}
	if cfg.consumerPrefix == "" {
		host, _ := os.Hostname() // a nameless host is no reason not to run
		cfg.consumerPrefix = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return cfg, nil
}

func newClient(rdb redis.UniversalClient, cfg clientConfig) *Client {
	c := &Client{
		rdb: rdb, prefix: cfg.prefix, cfg: cfg, log: cfg.log, hooks: hookSet{cfg.hooks, cfg.log},
		subs: map[GroupRef]*Subscription{}, drained: make(chan struct{}), failed: make(chan error, 1),
	}
	c.publisher = newPublisher(c)
	if cfg.concurrency > 0 {
		c.gate = engine.NewGate(cfg.concurrency)
	}
	return c
}

// parseURL never repeats the URL in an error: it may hold a password.
func parseURL(raw string) (*redis.UniversalOptions, error) {
	bad := func(err error) error {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return fmt.Errorf("%w: URL: %w; a form is redis://[user:password@]host:6379[/db] (special characters in a password percent-encoded)", ErrInvalidOption, err)
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return nil, bad(errors.New("no scheme")) //nolint:err113 // only its text is wanted
	}
	base, kind, _ := strings.Cut(scheme, "+")
	plain := base + "://" + rest
	switch kind {
	case "":
		o, err := redis.ParseURL(plain)
		if err != nil {
			return nil, bad(err)
		}
		return universal(o), nil
	case "sentinel":
		o, err := redis.ParseFailoverURL(plain)
		if err != nil {
			return nil, bad(err)
		}
		if o.MasterName == "" {
			return nil, bad(errors.New("master_name is missing")) //nolint:err113 // likewise
		}
		return &redis.UniversalOptions{
			Addrs: o.SentinelAddrs, MasterName: o.MasterName, SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword,
			Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig, ClientName: o.ClientName, Protocol: o.Protocol,
			DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolSize: o.PoolSize, MaxRetries: o.MaxRetries,
		}, nil
	case "cluster":
		o, err := redis.ParseClusterURL(plain)
		if err != nil {
			return nil, bad(err)
		}
		return &redis.UniversalOptions{
			Addrs: o.Addrs, IsClusterMode: true, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, ClientName: o.ClientName,
			Protocol: o.Protocol, DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolSize: o.PoolSize,
			MaxRetries: o.MaxRetries,
		}, nil
	}
	return nil, bad(fmt.Errorf("scheme %q is none of redis, rediss, unix, redis+sentinel, redis+cluster", scheme)) //nolint:err113 // likewise
}

func universal(o *redis.Options) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig, ClientName: o.ClientName,
		Protocol: o.Protocol, MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize,
		PoolTimeout: o.PoolTimeout, MinIdleConns: o.MinIdleConns, MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
	}
}

// Admin is every operation that the command line has. It needs no Start.
func (c *Client) Admin() *Admin { return &Admin{c} }

// open says whether calls may go out. Errors: ErrClosed.
func (c *Client) open() error {
	if c == nil || c.rdb == nil {
		return fmt.Errorf("%w: it was not made by Open or New", ErrClosed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase == closed {
		return ErrClosed
	}
	return nil
}

// streamKeys names a stream's keys. Errors: ErrInvalidName, ErrClosed.
func (c *Client) streamKeys(name string) (keys.Stream, error) {
	if err := keys.CheckName(name); err != nil {
		return keys.Stream{}, fmt.Errorf("%w: stream %q %w", ErrInvalidName, name, err)
	}
	if err := c.open(); err != nil {
		return keys.Stream{}, err
	}
	return keys.NewStream(c.prefix, name), nil
}

// groupKeys names a group's keys. Errors: ErrInvalidName, ErrClosed.
func (c *Client) groupKeys(stream, group string) (keys.Group, error) {
	if err := keys.CheckName(group); err != nil {
		return keys.Group{}, fmt.Errorf("%w: group %q %w", ErrInvalidName, group, err)
	}
	s, err := c.streamKeys(stream)
	if err != nil {
		return keys.Group{}, err
	}
	return s.Group(group), nil
}
