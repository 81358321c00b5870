package keys_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// nasty are names, and dedupe ids, made of what keys are made of.
func nasty() []string {
	sha := strings.Repeat("ab", 20)
	out := []string{
		"a", "b", ".", "..", "...", "-", ":", "0", "xstreamq:registry", "registry", "$", "*",
		"retry", "dlq", "due", "parked", "paused", "workers", "meta", "groups", "sent", "seen",
		".retry", ".due", ".meta", "a.retry", "a.dlq", "a.due", "a.parked", "a.meta", "a.b", "b.a", "a.", ".a",
		"sent:" + sha, "seen:" + sha, "a.sent:" + sha, "a.seen:" + sha, "sent:a", "seen:a", "sent:a.retry", "seen:" + sha + ".seen:a",
		sha, strings.Repeat("x", keys.MaxName), "ünïcode", "\u200b", "\ufeff", "\u202e",
	}
	parts := []string{"a", "b", ".", "retry", "due", "seen:", "sent:", sha, ":", "meta", "dlq"}
	random := rand.New(rand.NewPCG(1, 2))
	for range 25 {
		var b strings.Builder
		for range 1 + random.IntN(4) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		out = append(out, b.String())
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestKeysAreUnique(t *testing.T) {
	t.Parallel()
	names := nasty()
	for _, n := range names {
		if err := keys.CheckName(n); err != nil {
			t.Fatalf("%q %v: it tests nothing here", n, err)
		}
	}
	owner := map[string]string{}
	claim := func(key, who string) {
		if had, taken := owner[key]; taken && had != who {
			t.Fatalf("%q belongs to %s and to %s", key, had, who)
		}
		owner[key] = who
	}
	// All names as groups and ids of a few streams, and all as streams.
	for _, prefix := range []string{"", "a", "app:", "xstreamq:registry", "."} {
		for i, stream := range names {
			s := keys.NewStream(prefix, stream)
			who := fmt.Sprintf("prefix %q, stream %q, ", prefix, stream)
			claim(s.Registry(), fmt.Sprintf("prefix %q, registry", prefix))
			for _, id := range names {
				for _, k := range streamKeys(s, id) {
					claim(k.key, who+k.kind)
				}
			}
			groups := names
			if i%8 != 0 {
				groups = []string{"a", "a.retry", "seen:a"}
			}
			for _, group := range groups {
				for _, id := range []string{"a", group, "a.retry"} {
					for _, k := range groupKeys(s.Group(group), id) {
						claim(k.key, fmt.Sprintf("%sgroup %q, %s", who, group, k.kind))
					}
				}
			}
		}
	}
	if len(owner) < 50_000 {
		t.Errorf("only %d keys were compared", len(owner))
	}
}

// hashTag is Redis Cluster's rule: what stands between the first { and the next }, when that is not empty; else all of it.
func hashTag(key string) string {
	_, rest, open := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	if !open || !closed || tag == "" {
		return key
	}
	return tag
}

func TestHashTagIsTheStream(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "app:", "a.b", strings.Repeat("p", keys.MaxName)} {
		if err := keys.CheckPrefix(prefix); err != nil {
			t.Fatalf("prefix %q %v", prefix, err)
		}
		for _, stream := range nasty() {
			s := keys.NewStream(prefix, stream)
			all := slices.Concat(streamKeys(s, "{x}"), groupKeys(s.Group("svc"), "{x}"))
			for _, k := range all {
				if !strings.HasPrefix(k.key, prefix) {
					t.Errorf("%q does not begin with the prefix %q", k.key, prefix)
				}
				if tag := hashTag(k.key); tag != stream {
					t.Errorf("%s of stream %q: key %q has hash tag %q", k.kind, stream, k.key, tag)
				}
			}
		}
	}
}
