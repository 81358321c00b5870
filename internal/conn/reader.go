package conn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Block is how long a read waits on the server, Deadline how long the client waits for its answer: a server whose clock
// steps back leaves a blocked read hanging.
const (
	Block    = 2 * time.Second
	Deadline = 3500 * time.Millisecond
)

// ErrUnsupportedClient says that blocking reads cannot be given connections of their own.
var ErrUnsupportedClient = errors.New("a *redis.Client or *redis.ClusterClient is needed")

// Check refuses clients that blocking reads cannot be copied from.
func Check(rdb redis.UniversalClient) error {
	switch c := rdb.(type) {
	case *redis.Client:
		if c != nil {
			return nil
		}
	case *redis.ClusterClient:
		if c != nil {
			return nil
		}
	}
	return fmt.Errorf("%T: %w", rdb, ErrUnsupportedClient)
}

// Master is where to read what decides something: a cluster client may ask replicas, which lag behind.
func Master(ctx context.Context, rdb redis.UniversalClient, key string) (redis.UniversalClient, error) {
	if c, ok := rdb.(*redis.ClusterClient); ok {
		return c.MasterForKey(ctx, key)
	}
	return rdb, nil
}

// Reader is one connection for blocking reads, made anew when it breaks.
type Reader struct {
	client *redis.Client
	node   *redis.Client // where CLIENT UNBLOCK must go
	id     atomic.Int64
	server atomic.Pointer[string]
	raw    bytes.Buffer // the reply under way
	// Changed is called, when not nil, after a reconnect that found another server process: what was read from the old one
	// must not be acked by entry id alone.
	Changed func()
}

// NewReader copies what rdb is configured with. key says which node of a cluster is meant.
func NewReader(ctx context.Context, rdb redis.UniversalClient, key string, changed func()) (*Reader, error) {
	var node *redis.Client
	switch c := rdb.(type) {
	case *redis.Client:
		node = c
	case *redis.ClusterClient:
		var err error
		if node, err = c.MasterForKey(ctx, key); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("%T: %w", rdb, ErrUnsupportedClient)
	}
	r := &Reader{node: node, Changed: changed}
	opt := ownOptions(node, 1)
	before := opt.OnConnect
	opt.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		if before != nil {
			if err := before(ctx, cn); err != nil {
				return err
			}
		}
		r.connected(ctx, cn)
		return nil
	}
	r.client = redis.NewClient(opt)
	return r, nil
}

// Own is a client with connections of its own for calls that block, so that nothing waits behind them in node's pool. Nothing is
// sent twice by it, and no call takes longer than Deadline.
func Own(node *redis.Client, most int) *redis.Client { return redis.NewClient(ownOptions(node, most)) }

func ownOptions(node *redis.Client, most int) *redis.Options {
	opt := *node.Options()
	opt.PoolSize, opt.MinIdleConns, opt.MaxActiveConns, opt.MaxIdleConns, opt.MaxConcurrentDials = most, 0, 0, 0, 0
	opt.MaxRetries = -1
	opt.ReadTimeout = Deadline
	opt.PoolTimeout = time.Second
	if opt.WriteTimeout <= 0 {
		opt.WriteTimeout = Deadline
	}
	opt.DialerRetries = 1
	// What a client keeps of its own in its options: two clients that share it refuse each other's handlers, by a panic even.
	opt.PushNotificationProcessor, opt.ClientSideCache, opt.ClientSideCacheConfig = nil, nil, nil
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &opt
}

// connected learns the connection's id, for UNBLOCK, and whether the server is still the one it was.
func (r *Reader) connected(ctx context.Context, cn *redis.Conn) {
	id, err := cn.ClientID(ctx).Result()
	if err != nil {
		id = 0 // a server without CLIENT ID: reads then block shortly
	}
	r.id.Store(id)
	run := field(cn.Info(ctx, "server").Val(), "run_id:")
	if old := r.server.Swap(&run); old != nil && *old != run && r.Changed != nil {
		r.Changed()
	}
}

// Evicts is the server's maxmemory-policy where that lets a full memory take what is stored; "" also where it is not told.
func Evicts(ctx context.Context, node redis.UniversalClient) string {
	if policy := field(node.Info(ctx, "memory").Val(), "maxmemory_policy:"); policy != "noeviction" {
		return policy
	}
	return ""
}

// field is a value of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Process sends a command on the reader's connection.
func (r *Reader) Process(ctx context.Context, cmd redis.Cmder) error {
	return r.client.Process(ctx, cmd)
}

// BlockFor is how long a read may block: shortly where it cannot be unblocked.
func (r *Reader) BlockFor() time.Duration {
	if r.id.Load() == 0 {
		return 200 * time.Millisecond
	}
	return Block
}

// Unblock wakes a blocked read. It may come too early, so callers repeat it until the read has returned.
func (r *Reader) Unblock(ctx context.Context) {
	if id := r.id.Load(); id != 0 {
		_ = r.node.ClientUnblock(ctx, id).Err() // repeated by the caller; the read's own end bounds it
	}
}

// Close ends the connection.
func (r *Reader) Close() error { return r.client.Close() }
