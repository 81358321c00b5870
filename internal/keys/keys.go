// Package keys names every key of a stream and its groups. All keys of a stream share its name as hash tag, so that
// one script may touch them all in a cluster. docs/wire-format.md is the public description.
package keys

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
)

// Registry is the set of what exists: JSON arrays [stream, group], group "" for the stream itself. It lies in a slot
// of its own, so no script touches it. A prefix goes before it too.
const Registry = "xstreamq:registry"

// Stream holds the keys that concern all groups of a stream.
type Stream struct {
	Prefix, Name string
	Main         string // stream: the queue
	Due, Parked  string // zset and hash: published with a delay
	Groups       string // hash: our groups, with position, creation time, or a tombstone
	Meta         string // hash: format, retention, compaction's cursor
	base         string
}

// NewStream makes the keys of a stream; prefix and name must have passed CheckPrefix and CheckName.
func NewStream(prefix, name string) Stream {
	base := prefix + "{" + name + "}"
	return Stream{
		Prefix: prefix, Name: name, base: base, Main: base,
		Due: base + ".due", Parked: base + ".parked", Groups: base + ".groups", Meta: base + ".meta",
	}
}

// Sent is the publish-dedupe marker of a dedupe id. Ids are hashed, so that none can meet another key.
func (s Stream) Sent(dedupeID string) string { return s.base + ".sent:" + digest(dedupeID) }

// Probe is a key that never exists: an XADD there with NOMKSTREAM tells whether the server would take a message.
func (s Stream) Probe() string { return s.base + ".probe" }

// Registry is the registry's key under this stream's prefix.
func (s Stream) Registry() string { return s.Prefix + Registry }

// Member is what the registry holds for a group, "" for the stream itself.
func (s Stream) Member(group string) string {
	b, _ := json.Marshal([2]string{s.Name, group}) // strings always marshal
	return string(b)
}

// Group holds the keys of one group of a stream.
type Group struct {
	Stream
	Group   string
	Retry   string // stream with a group of the same name: due for another attempt
	DLQ     string // stream: dead letters
	Due     string // zset: parked failures by due time
	Parked  string // hash: their packed fields
	Paused  string // string: the pause flag
	Workers string // hash: consumer → lease record
	Meta    string // hash: last sweep and the like
	prefix  string
}

// Group makes the keys of a group; its name must have passed CheckName.
func (s Stream) Group(name string) Group {
	p := s.base + "." + name
	return Group{
		Stream: s, Group: name, prefix: p,
		Retry: p + ".retry", DLQ: p + ".dlq", Due: p + ".due", Parked: p + ".parked",
		Paused: p + ".paused", Workers: p + ".workers", Meta: p + ".meta",
	}
}

// Seen is the marker of a message that this group finished.
func (g Group) Seen(id string) string { return g.prefix + ".seen:" + digest(id) }

func digest(s string) string {
	sum := sha1.Sum([]byte(s)) //nolint:gosec // names a key; scripts and other languages have SHA-1 at hand
	return hex.EncodeToString(sum[:])
}
