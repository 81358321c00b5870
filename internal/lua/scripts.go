// Package lua holds every script, one file each in scripts/, behind one typed function each. The scripts carry the
// promises: each move copies forward before it acks behind, checks its owner, and does bounded work.
package lua

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed scripts/*.lua
var files embed.FS

// script is a text ready to be sent, lib.lua before it.
type script struct {
	name, text, sha string
}

func load(name string) script {
	return newScript(name, source("lib"), source(name))
}

func newScript(name, lib, body string) script {
	text := strip(lib) + strip(body)
	sum := sha1.Sum([]byte(text)) //nolint:gosec // the name Redis gives a script
	return script{name: name, text: text, sha: hex.EncodeToString(sum[:])}
}

func source(name string) string {
	b, err := files.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // embedded: cannot miss
	}
	return string(b)
}

// strip leaves out whole-line comments and indentation, which only cost bytes on the wire after a script flush.
func strip(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--") {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// Runner is what scripts run on: a client, borrowed or owned, standalone or cluster.
type Runner interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

// Once is a command that the client library never sends a second time: repeating one whose answer was lost is our
// decision, by what the answer proves.
type Once struct{ *redis.Cmd }

// NoRetry keeps go-redis from re-sending it, on borrowed and cluster clients alike.
func (Once) NoRetry() bool { return true }

// NewOnce makes a command that is sent at most once.
func NewOnce(ctx context.Context, args ...any) Once { return Once{redis.NewCmd(ctx, args...)} }

// run sends the script by its hash, and whole where the server does not know it: that answer proves it did not run.
func (s script) run(ctx context.Context, r Runner, keys []string, args ...any) (any, error) {
	cmd := s.command(ctx, "evalsha", s.sha, keys, args)
	err := r.Process(ctx, cmd)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		cmd = s.command(ctx, "eval", s.text, keys, args)
		err = r.Process(ctx, cmd)
	}
	if err != nil {
		return nil, fmt.Errorf("script %s: %w", s.name, err)
	}
	return cmd.Val(), nil
}

func (s script) command(ctx context.Context, verb, text string, keys []string, args []any) Once {
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, verb, text, len(keys))
	for _, k := range keys {
		all = append(all, k)
	}
	return NewOnce(ctx, append(all, args...)...)
}

// list is a reply that must be an array of at least n.
func (s script) list(v any, err error, n int) ([]any, error) {
	if err != nil {
		return nil, err
	}
	l, ok := v.([]any)
	if !ok || len(l) < n {
		return nil, fmt.Errorf("script %s: unknown reply %v", s.name, v)
	}
	return l, nil
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

func texts(l []any) []string {
	out := make([]string, len(l))
	for i, v := range l {
		out[i] = text(v)
	}
	return out
}
