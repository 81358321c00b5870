package server

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The system's cache survives the death of a process, so killing a server shows nothing of what a power cut does to one that
// syncs once a second. This file makes it forget what it has appended of late.

type fileSize struct {
	at    time.Time
	sizes map[string]int64
}

const sizeEvery = 50 * time.Millisecond

// WatchFiles remembers how large the append-only files were, for Forget. It ends with Unwatch.
func (s *Server) WatchFiles() {
	s.watch = make(chan struct{})
	go func() {
		t := time.NewTicker(sizeEvery)
		defer t.Stop()
		for {
			select {
			case <-s.watch:
				return
			case now := <-t.C:
				sizes, err := s.files()
				if err != nil {
					continue // renamed while it was walked
				}
				s.mu.Lock()
				s.sizes = append(s.sizes, fileSize{now, sizes})
				if len(s.sizes) > 100 {
					s.sizes = s.sizes[1:]
				}
				s.mu.Unlock()
			}
		}
	}()
}

// Unwatch ends WatchFiles, if it was called.
func (s *Server) Unwatch() {
	if s.watch != nil {
		close(s.watch)
	}
}

// files are the append-only files that commands are appended to.
func (s *Server) files() (map[string]int64, error) {
	out := map[string]int64{}
	return out, filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".incr.aof") && !strings.HasSuffix(path, "appendonly.aof") {
			return err
		}
		info, err := d.Info()
		if err == nil {
			out[path] = info.Size()
		}
		return err
	})
}

// Forget cuts off what the dead server had appended since that time. It returns how many bytes those were.
func (s *Server) Forget(since time.Time) (int64, error) {
	now, err := s.files()
	if err != nil {
		return 0, fmt.Errorf("server: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var cut int64
	for _, then := range slices.Backward(s.sizes) {
		if then.at.After(since) {
			continue
		}
		for path, size := range now {
			before, known := then.sizes[path]
			if !known || before >= size { // a file made since then holds a rewrite's own base
				continue
			}
			if err := os.Truncate(path, before); err != nil {
				return cut, fmt.Errorf("server: %w", err)
			}
			cut += size - before
		}
		s.sizes = nil
		return cut, nil
	}
	return 0, fmt.Errorf("server: no size of a file is known from before %v", since)
}
