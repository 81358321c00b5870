package bench

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
)

func body(size int) []byte { return bytes.Repeat([]byte("x"), size) }

// publish has callers that each wait for their message's id.
func (b *bench) publish(callers, n int) error {
	text := body(b.o.Size)
	if _, err := b.q.Publish(b.ctx, text); err != nil { // the connection, and the stream's first time
		return err
	}
	var next atomic.Int64
	failed := make(chan error, callers)
	var wg sync.WaitGroup
	m := begin()
	for range callers {
		wg.Go(func() {
			for {
				i := int(next.Add(1))
				if i > n {
					return
				}
				if i%1000 == 0 {
					b.progress(i, n)
				}
				if _, err := b.q.Publish(b.ctx, text); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	m.end(b, n)
	return nil
}

const batch = 1000

func (b *bench) publishBatch() error {
	n := max(1, b.o.Messages/batch) * batch
	if _, err := b.q.Publish(b.ctx, body(b.o.Size)); err != nil {
		return err
	}
	m := begin()
	if err := b.fill(n, b.o.Size, false); err != nil {
		return err
	}
	m.end(b, n)
	return nil
}

// fill publishes n messages, in batches.
func (b *bench) fill(n, size int, keep bool) error {
	text := body(size)
	bodies := make([][]byte, min(n, max(1, min(batch, fillBytes/size))))
	for i := range bodies {
		bodies[i] = text
	}
	for done := 0; done < n; done += len(bodies) {
		b.progress(done, n)
		part := bodies[:min(len(bodies), n-done)]
		out, err := b.q.PublishBatch(b.ctx, part)
		if err != nil {
			return fmt.Errorf("filling the stream: %w", err)
		}
		if keep {
			for _, p := range out {
				b.ids = append(b.ids, p.ID)
			}
		}
	}
	return nil
}

// Bounds of what lies on the server and goes in one call, in bytes of bodies.
const (
	storedBytes = 256 << 20
	fillBytes   = 4 << 20
)

func (b *bench) bounded(size int) int { return max(1, min(b.o.Messages, storedBytes/size)) }
