package lua

import (
	"fmt"
	"strings"
)

func (b *bench) redrive(anew bool, body []byte, letters ...Letter) string {
	got, err := Redrive(b.ctx, b.r, b.k, letters, anew, body)
	if err != nil {
		return "error " + err.Error()
	}
	var out []string
	for _, s := range got {
		out = append(out, moments(strings.TrimSpace(s.Status+" "+s.Detail)))
	}
	return strings.Join(out, " ; ")
}

func (b *bench) purge(letters ...Letter) string {
	n, err := Purge(b.ctx, b.r, b.k, letters)
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprint(n)
}

var redriveChecks = []check{
	{"redrive: for its own group, counters at 0", func(b *bench) {
		b.given(`dlq: 5-0 body=a headers={} x=y rc=6 lost=1 losses=2 cut=3 redriven=4 oid=1-0 err=e reason=retries
			dlq: 6-0 body=b
			dlq: 7-0 body=c oid=2-0 reason=lost
			groups: g = 0-0|T
			seen 1-0 = 1
			seen 6-0 = 1
			seen 2-0 = 1`)
		b.then(b.redrive(false, nil, Letter{EntryID: "5-0", ID: "1-0"}, Letter{EntryID: "6-0", ID: "6-0"}, Letter{EntryID: "9-0", ID: "2-0"}),
			"moved x/5-0 ; moved x/6-0 ; gone", `- dlq: 5-0 body=a headers={} x=y rc=6 lost=1 losses=2 cut=3 redriven=4 oid=1-0 err=e reason=retries
			- dlq: 6-0 body=b
			- seen 1-0 = 1
			- seen 6-0 = 1
			+ due: x/5-0 = T
			+ due: x/6-0 = T
			+ parked: x/5-0 = body=a headers={} x=y err=e oid=1-0 redriven=5 due=T
			+ parked: x/6-0 = body=b oid=6-0 redriven=1 due=T`)
		b.then(b.redrive(false, nil, Letter{EntryID: "5-0", ID: "1-0"}), "gone", "")
		b.then(b.promote(false), "moved=2", `- due: x/5-0 = T
			- due: x/6-0 = T
			- parked: x/5-0 = body=a headers={} x=y err=e oid=1-0 redriven=5 due=T
			- parked: x/6-0 = body=b oid=6-0 redriven=1 due=T
			+ retry: * body=a headers={} x=y err=e oid=1-0 redriven=5 due=T
			+ retry: * body=b oid=6-0 redriven=1 due=T`)
	}},
	{"redrive: counters stop at nine digits", func(b *bench) {
		b.given("dlq: 5-0 body=a redriven=999999999 oid=1-0\ngroups: g = 0-0|T")
		b.then(b.redrive(false, nil, Letter{EntryID: "5-0", ID: "1-0"}), "moved x/5-0", `- dlq: 5-0 body=a redriven=999999999 oid=1-0
			+ due: x/5-0 = T
			+ parked: x/5-0 = body=a oid=1-0 redriven=999999999 due=T`)
	}},
	{"redrive: a taken member is never overwritten", func(b *bench) {
		b.given(`dlq: 5-0 body=new
			groups: g = 0-0|T
			parked: x/5-0 = body=old
			due: x/5-0 = T+9`)
		b.then(b.redrive(false, nil, Letter{EntryID: "5-0", ID: "5-0"}), "moved x/5-0/2", `- dlq: 5-0 body=new
			+ due: x/5-0/2 = T
			+ parked: x/5-0/2 = body=new oid=5-0 redriven=1 due=T`)
	}},
	{"redrive: anew, to all groups", func(b *bench) {
		b.given(`dlq: 5-0 body=a headers={} did=k x=y rc=6 lost=1 losses=2 cut=3 redriven=4 due=5 oid=1-0 from=0-1 err=e reason=retries
			dlq: 6-0 body=b
			seen 1-0 = 1
			groups: g = 0-0|T`)
		b.then(b.redrive(true, nil, Letter{EntryID: "5-0", ID: "1-0"}, Letter{EntryID: "6-0", ID: "6-0"}), "moved * ; moved *",
			`- dlq: 5-0 body=a headers={} did=k x=y rc=6 lost=1 losses=2 cut=3 redriven=4 due=5 oid=1-0 from=0-1 err=e reason=retries
			- dlq: 6-0 body=b
			+ main: * body=a headers={} did=k x=y from=1-0
			+ main: * body=b from=6-0`)
	}},
	{"redrive: with another body", func(b *bench) {
		b.given(`dlq: 5-0 h=1 body=a x=y body=z
			dlq: 6-0 h=2
			dlq: 7-0 body=c
			groups: g = 0-0|T`)
		b.then(b.redrive(false, []byte("n\x00\xff\r\n"), Letter{EntryID: "5-0", ID: "5-0"}, Letter{EntryID: "6-0", ID: "6-0"}), "moved x/5-0 ; moved x/6-0",
			`- dlq: 5-0 h=1 body=a x=y body=z
			- dlq: 6-0 h=2
			+ due: x/5-0 = T
			+ due: x/6-0 = T
			+ parked: x/5-0 = h=1 body="n\x00\xff\r\n" x=y body=z oid=5-0 redriven=1 due=T
			+ parked: x/6-0 = h=2 body="n\x00\xff\r\n" oid=6-0 redriven=1 due=T`)
		b.then(b.redrive(true, []byte{}, Letter{EntryID: "7-0", ID: "7-0"}), "moved *", "- dlq: 7-0 body=c\n+ main: * body=\"\" from=7-0")
	}},
	{"redrive: what has no body cannot", func(b *bench) {
		b.given(`dlq: 5-0 raw=junk member=m/1-0 reason=malformed
			dlq: 6-0 packed=… reason=too-wide
			dlq: 7-0 body=""
			groups: g = 0-0|T`)
		b.then(b.redrive(false, nil, Letter{EntryID: "5-0", ID: "5-0"}, Letter{EntryID: "6-0", ID: "6-0"}, Letter{EntryID: "7-0", ID: "7-0"}),
			"unredrivable ; unredrivable ; moved x/7-0", `- dlq: 7-0 body=""
			+ due: x/7-0 = T
			+ parked: x/7-0 = body="" oid=7-0 redriven=1 due=T`)
		b.then(b.redrive(true, nil, Letter{EntryID: "5-0", ID: "5-0"}), "unredrivable", "")
	}},
	{"redrive: a group that does not exist", func(b *bench) {
		for _, groups := range []string{"groups: other = 0-0|T", "groups: g = x|T"} {
			b.do("DEL", b.k.DLQ, b.k.Groups)
			b.given("dlq: 5-0 body=a\nmain: 1-0 body=b\n" + groups)
			if got := b.redrive(false, nil, Letter{EntryID: "5-0", ID: "5-0"}); !strings.Contains(got, "NOGROUP g does not exist") {
				b.failf("%s", got)
			}
			b.then("", "", "")
			b.do("DEL", b.k.Main)
		}
		b.last = b.state()
		b.then(b.redrive(true, nil, Letter{EntryID: "5-0", ID: "5-0"}), "moved *", "- dlq: 5-0 body=a\n+ main: * body=a from=5-0")
	}},
	{"redrive: a target of the wrong type keeps the dead letter", func(b *bench) {
		b.given("dlq: 5-0 body=a\ngroups: g = 0-0|T\nparked = oops\nmain = oops\nseen 5-0 = 1")
		b.then(b.redrive(false, nil, Letter{EntryID: "5-0", ID: "5-0"}),
			"error WRONGTYPE Operation against a key holding the wrong kind of value (HSETNX "+b.k.Parked+")", "")
		b.then(b.redrive(true, nil, Letter{EntryID: "5-0", ID: "5-0"}),
			"error WRONGTYPE Operation against a key holding the wrong kind of value (XADD "+b.k.Main+")", "")
	}},
	{"purge: deletes, and frees dedupe ids that name the message", func(b *bench) {
		b.given(`dlq: 5-0 body=a did=k oid=1-0
			dlq: 6-0 body=b did=l
			dlq: 7-0 body=c did=m
			dlq: 8-0 body=d
			sent k = 1-0
			sent l = 9-9
			sent m = 7-0`)
		b.then(b.purge(Letter{EntryID: "5-0", ID: "1-0", DedupeID: "k"}, Letter{EntryID: "6-0", ID: "6-0", DedupeID: "l"},
			Letter{EntryID: "9-0", ID: "7-0", DedupeID: "m"}, Letter{EntryID: "8-0", ID: "8-0"}), "3", `- dlq: 5-0 body=a did=k oid=1-0
			- dlq: 6-0 body=b did=l
			- dlq: 8-0 body=d
			- sent k = 1-0`)
		b.then(b.purge(Letter{EntryID: "8-0", ID: "8-0"}), "0", "")
	}},
	{"purge: a marker of the wrong type does not stop those behind", func(b *bench) {
		b.given("dlq: 5-0 body=a did=k\ndlq: 6-0 body=b")
		b.do("HSET", b.k.Sent("k"), "f", "v")
		b.then(b.purge(Letter{EntryID: "5-0", ID: "5-0", DedupeID: "k"}, Letter{EntryID: "6-0", ID: "6-0"}), "2", "- dlq: 5-0 body=a did=k\n- dlq: 6-0 body=b")
	}},
	{"purge: the wrong type", func(b *bench) {
		b.given("dlq = oops")
		if got := b.purge(Letter{EntryID: "5-0", ID: "5-0"}); !strings.Contains(got, "WRONGTYPE") {
			b.failf("%s", got)
		}
	}},
}
