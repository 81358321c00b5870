package speed

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/hibiken/asynq"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
)

// raw is the floor: an XADD a call, and one loop that reads 256 entries and acks them with one XACK.
type raw struct{ c *redis.Client }

func newRaw(ctx context.Context, addr string) (system, error) {
	c := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 2 * workers})
	return &raw{c}, c.XGroupCreateMkStream(ctx, "raw", "g", "0").Err()
}

func (r *raw) publish(ctx context.Context, body []byte) error {
	return r.c.Do(ctx, "XADD", "raw", "*", "body", body).Err()
}

func (r *raw) consume(ctx context.Context, handle func([]byte)) error {
	ids := make([]string, 0, 256)
	for ctx.Err() == nil {
		res, err := r.c.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: "g", Consumer: "c", Streams: []string{"raw", ">"}, Count: 256, Block: time.Second,
		}).Result()
		if err != nil {
			continue // nothing came, or the end
		}
		ids = ids[:0]
		for _, m := range res[0].Messages {
			text, _ := m.Values["body"].(string)
			handle([]byte(text))
			ids = append(ids, m.ID)
		}
		if err := r.c.XAck(ctx, "raw", "g", ids...).Err(); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

func (r *raw) close() { _ = r.c.Close() }

// asynq is the job queue on Redis that is used most in Go.
type asynqSystem struct {
	redis  asynq.RedisClientOpt
	client *asynq.Client
	server *asynq.Server
}

func newAsynq(_ context.Context, addr string) (system, error) {
	opt := asynq.RedisClientOpt{Addr: addr, PoolSize: 2 * workers}
	return &asynqSystem{redis: opt, client: asynq.NewClient(opt)}, nil
}

func (a *asynqSystem) publish(ctx context.Context, body []byte) error {
	_, err := a.client.EnqueueContext(ctx, asynq.NewTask("order", body))
	return err
}

func (a *asynqSystem) consume(_ context.Context, handle func([]byte)) error {
	a.server = asynq.NewServer(a.redis, asynq.Config{Concurrency: workers, LogLevel: asynq.FatalLevel, ShutdownTimeout: time.Second})
	return a.server.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		handle(t.Payload())
		return nil
	}))
}

func (a *asynqSystem) close() {
	if a.server != nil {
		a.server.Shutdown()
	}
	_ = a.client.Close()
}

// jetStream is NATS with a server in this process and its files on disk, the broker that one would run for a queue.
type jetStream struct {
	dir    string
	server *server.Server
	conn   *nats.Conn
	js     jetstream.JetStream
}

func newJetStream(ctx context.Context, _ string) (system, error) {
	dir, err := os.MkdirTemp("", "jetstream")
	if err != nil {
		return nil, err
	}
	j := &jetStream{dir: dir}
	if j.server, err = server.NewServer(&server.Options{Port: -1, JetStream: true, StoreDir: dir, NoLog: true, NoSigs: true}); err != nil {
		return j, err
	}
	go j.server.Start()
	if !j.server.ReadyForConnections(10 * time.Second) {
		return j, fmt.Errorf("the NATS server does not listen")
	}
	if j.conn, err = nats.Connect(j.server.ClientURL()); err != nil {
		return j, err
	}
	if j.js, err = jetstream.New(j.conn); err != nil {
		return j, err
	}
	_, err = j.js.CreateStream(ctx, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders"}})
	return j, err
}

func (j *jetStream) publish(ctx context.Context, body []byte) error {
	_, err := j.js.Publish(ctx, "orders", body)
	return err
}

func (j *jetStream) consume(ctx context.Context, handle func([]byte)) error {
	c, err := j.js.CreateConsumer(ctx, "ORDERS", jetstream.ConsumerConfig{
		Durable: "g", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 10_000,
	})
	if err != nil {
		return err
	}
	work := make(chan jetstream.Msg, 1024)
	for range workers {
		go func() {
			for m := range work {
				handle(m.Data())
				_ = m.Ack() // sent with others; an error is the connection's end
			}
		}()
	}
	running, err := c.Consume(func(m jetstream.Msg) { work <- m }, jetstream.PullMaxMessages(1000))
	if err != nil {
		return err
	}
	<-ctx.Done()
	running.Drain()
	<-running.Closed()
	close(work)
	return nil
}

func (j *jetStream) close() {
	if j.conn != nil {
		j.conn.Close()
	}
	if j.server != nil {
		j.server.Shutdown()
		j.server.WaitForShutdown()
	}
	os.RemoveAll(j.dir)
}
