package xstreamq

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/internal/keys"
)

// Admin operates on what is stored. By reading it delivers, acks and creates nothing. It works until Close; errors of every
// method: ErrClosed, ErrInvalidName, ErrUnavailable, ErrAuth; and ErrNotFound for a stream or a group that does not exist. A
// borrowed cluster client that reads from replicas (ReadOnly, RouteByLatency, RouteRandomly) shows what its replicas have.
type Admin struct{ c *Client }

// StreamAdmin is what concerns all groups of a stream. A stream exists while it has entries or groups, a group of it is
// recorded or has dead letters, or delayed messages wait for it.
type StreamAdmin struct {
	c    *Client
	name string
}

// GroupAdmin is one group. A group exists while Redis or the stream's record has it, or dead letters of it are left.
type GroupAdmin struct {
	c             *Client
	stream, group string
}

// Stream is one stream; a wrong name is reported by every method.
func (a *Admin) Stream(name string) *StreamAdmin { return &StreamAdmin{a.c, name} }

// Group is one group of a stream; wrong names are reported by every method.
func (a *Admin) Group(stream, group string) *GroupAdmin { return &GroupAdmin{a.c, stream, group} }

// GroupRef names a group of a stream; Group is "" for a stream without one.
type GroupRef struct {
	Stream string `json:"stream"`
	Group  string `json:"group"`
}

func compareRefs(a, b GroupRef) int {
	return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Group, b.Group))
}

// Registered lists the streams (Group "") and groups that clients with this prefix have used, sorted, also those that no
// longer exist. What others than this library made is not in it.
func (a *Admin) Registered(ctx context.Context) ([]GroupRef, error) {
	if err := a.c.open(); err != nil {
		return nil, err
	}
	members, err := a.c.rdb.SMembers(ctx, a.c.prefix+keys.Registry).Result()
	if err != nil {
		return nil, serverError("admin: registry", err)
	}
	refs := make([]GroupRef, 0, len(members))
	for _, m := range members {
		var pair []string
		if json.Unmarshal([]byte(m), &pair) != nil || len(pair) != 2 || keys.CheckName(pair[0]) != nil ||
			pair[1] != "" && keys.CheckName(pair[1]) != nil {
			continue // written by hand: it names nothing
		}
		refs = append(refs, GroupRef{pair[0], pair[1]})
	}
	slices.SortFunc(refs, compareRefs)
	return slices.Compact(refs), nil
}

// registeredGroups are the groups that the registry has for a stream.
func (c *Client) registeredGroups(ctx context.Context, stream string) ([]string, error) {
	refs, err := (&Admin{c}).Registered(ctx)
	var groups []string
	for _, r := range refs {
		if r.Stream == stream && r.Group != "" {
			groups = append(groups, r.Group)
		}
	}
	return groups, err
}

// Depths is the depth of every registered stream and group, and of the groups that others made on these streams, sorted. A
// stream without a group has one depth with Group "". What could be read is returned beside an error about the rest. A lag is
// counted up to 10,000, among many streams up to 40,000 in all and 250 each; beyond that it is the server's word, or unknown.
func (a *Admin) Depths(ctx context.Context) ([]Depth, error) {
	refs, err := a.Registered(ctx)
	if err != nil {
		return nil, err
	}
	var list []streamGroups
	for _, r := range refs {
		if n := len(list); n == 0 || list[n-1].stream != r.Stream {
			list = append(list, streamGroups{stream: r.Stream})
		}
		if last := &list[len(list)-1]; r.Group != "" {
			last.groups = append(last.groups, r.Group)
		}
	}
	return a.c.depths(ctx, list, true)
}

// Page bounds what one call returns: Limit 0 = 100, at most 1,000, else ErrInvalidOption. After is the Next of the page
// before. A page of large bodies ends early, at about 32 MiB; Next says whether it was the last.
type Page struct {
	After  string
	Limit  int
	Newest bool // newest first
}

const (
	pageDefault = 100
	pageMost    = 1000
)

func (p Page) limit() (int, error) {
	if p.Limit == 0 {
		return pageDefault, nil
	}
	if p.Limit < 0 || p.Limit > pageMost {
		return 0, invalid("Page.Limit", p.Limit, "0 (100) to 1000")
	}
	return p.Limit, nil
}

// Records is a page.
type Records struct {
	Items []Record
	Next  string // After of the next page; "" = the end
}

// Record is a message as it is stored.
type Record struct {
	ID          string // stable for life: what the publish returned
	EntryID     string // where it lies now: a stream entry, or the name it is parked under
	Stream      string
	PublishedAt time.Time // server time of the first publish; zero when the ID does not tell
	DueAt       time.Time // of delayed and retrying messages, else zero
	Attempts    int       // handler runs that failed, a reject counts
	Lost        int       // leases lost in a row
	Error       string    // of the last attempt that failed; "" = none did
	Headers     map[string]string
	Body        []byte      // nil: it has none
	Fields      [][2]string // those that are not ours, in order
}
