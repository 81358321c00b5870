package lua

import "strings"

func (b *bench) ensure(from, why, retain string) string {
	what, position, err := EnsureGroup(b.ctx, b.r, b.k, from, why, retain)
	if err != nil {
		return "error " + err.Error()
	}
	return moments(strings.TrimSpace(what + " " + position))
}

var groupChecks = []check{
	{"group: made at the head of nothing", func(b *bench) {
		b.given("")
		b.then(b.ensure("0", GroupStart, ""), "created 0-0", `+ main @g: at 0-0
			+ retry @g: at 0-0
			+ groups: g = 0-0|T
			+ meta: format = 1`)
		b.at(9)
		b.then(b.ensure("0", GroupStart, ""), "exists 0-0", "")
		b.then(b.ensure("$", GroupAgain, ""), "exists 0-0", "")
	}},
	{"group: made at the head of a young stream", func(b *bench) {
		b.given("main: T-3600000-0 body=a\nmain: T-5-0 body=b")
		b.then(b.ensure("0", GroupStart, ""), "created 0-0",
			"+ main @g: at 0-0\n+ retry @g: at 0-0\n+ groups: g = 0-0|T\n+ meta: format = 1")
	}},
	{"group: made behind an id", func(b *bench) {
		b.given("main: 5-0 body=a\nmain: 6-0 body=b\ngroups: other = 6-0|T-9\nmain @other: at 6-0")
		b.then(b.ensure("5-0", GroupCreate, ""), "created 5-0",
			"+ main @g: at 5-0\n+ retry @g: at 0-0\n+ groups: g = 5-0|T\n+ meta: format = 1")
	}},
	{"group: the first of ours on an old stream keeps its history", func(b *bench) {
		b.given("main: T-3600001-0 body=a\nmain: T-5-0 body=b\nmain @foreign: at T-5-0\ngroups: gone = x|T-9")
		b.then(b.ensure("0", GroupStart, ""), "created 0-0", `+ main @g: at 0-0
			+ retry @g: at 0-0
			+ groups: g = 0-0|T
			+ meta: format = 1
			+ meta: retain = forever
			+ meta: by = found`)
	}},
	{"group: the first of ours at the tail keeps the history", func(b *bench) {
		b.given("main: T-5-0 body=b")
		b.then(b.ensure("$", GroupStart, ""), "created T-5-0", `+ main @g: at T-5-0
			+ retry @g: at 0-0
			+ groups: g = T-5-0|T
			+ meta: format = 1
			+ meta: retain = forever
			+ meta: by = found`)
	}},
	{"group: the second of ours decides nothing", func(b *bench) {
		b.given("main: T-99999999-0 body=b\ngroups: first = 0-0|T-9\nmain @first: at 0-0\nmeta: format = 1")
		b.then(b.ensure("$", GroupStart, ""), "created T-99999999-0",
			"+ main @g: at T-99999999-0\n+ retry @g: at 0-0\n+ groups: g = T-99999999-0|T")
	}},
	{"group: retention that was decided stays, an option writes it", func(b *bench) {
		b.given("main: T-99999999-0 body=b\nmeta: retain = 5000\nmeta: by = option\nmeta: format = 1")
		b.then(b.ensure("$", GroupStart, ""), "created T-99999999-0",
			"+ main @g: at T-99999999-0\n+ retry @g: at 0-0\n+ groups: g = T-99999999-0|T")
		b.then(b.ensure("$", GroupStart, "7000"), "exists T-99999999-0", "- meta: retain = 5000\n+ meta: retain = 7000")
		b.then(b.ensure("$", GroupStart, "7000"), "exists T-99999999-0", "")
		b.then(b.ensure("$", GroupStart, "forever"), "exists T-99999999-0", "- meta: retain = 7000\n+ meta: retain = forever")
		b.do("DEL", b.k.Stream.Meta)
		b.last = b.state()
		b.then(b.ensure("$", GroupStart, "7000"), "exists T-99999999-0", "+ meta: retain = 7000\n+ meta: by = option\n+ meta: format = 1")
	}},
	{"group: an option on an old stream wins over what is found", func(b *bench) {
		b.given("main: T-99999999-0 body=b")
		b.then(b.ensure("$", GroupStart, "7000"), "created T-99999999-0", `+ main @g: at T-99999999-0
			+ retry @g: at 0-0
			+ groups: g = T-99999999-0|T
			+ meta: format = 1
			+ meta: retain = 7000
			+ meta: by = option`)
	}},
	{"group: one that others made is recorded by what it needs", func(b *bench) {
		b.given("main: 5-0 body=a\nmain: 6-0 body=b\nmain @g: at 6-0\nmain @g x: 5-0\nmain @h: at 0-0")
		b.then(b.ensure("0", GroupStart, ""), "exists 6-0", `+ retry @g: at 0-0
			+ groups: g = 4-18446744073709551615|T
			+ meta: format = 1
			+ meta: retain = forever
			+ meta: by = found`)
	}},
	{"group: a lost retry group is made again", func(b *bench) {
		b.given("main: 5-0 body=a\nmain @g: at 5-0\ngroups: g = 5-0|T-9\nmeta: format = 1\nretry: 1-0 body=r")
		b.then(b.ensure("0", GroupAgain, ""), "exists 5-0", "+ retry @g: at 0-0")
	}},
	{"group: a vanished one is made again where it stood", func(b *bench) {
		for _, why := range []string{GroupStart, GroupAgain, GroupCreate} {
			b.do("DEL", b.k.Main, b.k.Retry, b.k.Groups, b.k.Stream.Meta)
			b.given("main: 5-0 body=a\nmain: 6-0 body=b\nmain: 7-0 body=c\ngroups: g = 5-18446744073709551615|T-9\nretry: 1-0 body=r\nretry @g: at 1-0\nmeta: format = 1")
			b.then(b.ensure("$", why, ""), "remade 5-18446744073709551615", `- groups: g = 5-18446744073709551615|T-9
				+ main @g: at 5-18446744073709551615
				+ groups: g = 5-18446744073709551615|T`)
		}
	}},
	{"group: made again at the head where the stream was replaced", func(b *bench) {
		b.given("main: 5-0 body=a\ngroups: g = 5-1|T-9\nmeta: format = 1")
		b.then(b.ensure("$", GroupAgain, ""), "remade 0-0", `- groups: g = 5-1|T-9
			+ main @g: at 0-0
			+ retry @g: at 0-0
			+ groups: g = 0-0|T`)
	}},
	{"group: made again at the head where the stream is gone", func(b *bench) {
		b.given("groups: g = 5-1|T-9\nmeta: format = 1")
		b.then(b.ensure("$", GroupAgain, ""), "remade 0-0", `- groups: g = 5-1|T-9
			+ main @g: at 0-0
			+ retry @g: at 0-0
			+ groups: g = 0-0|T`)
	}},
	{"group: made again at the head where nothing is recorded", func(b *bench) {
		b.given("main: 5-0 body=a\nmeta: format = 1")
		b.then(b.ensure("$", GroupAgain, ""), "remade 0-0", "+ main @g: at 0-0\n+ retry @g: at 0-0\n+ groups: g = 0-0|T")
	}},
	{"group: a tombstone ends an older subscription, a new start is told", func(b *bench) {
		b.given("main: 5-0 body=a\ngroups: g = x|T-9\nmeta: format = 1")
		b.then(b.ensure("0", GroupAgain, ""), "removed", "")
		b.then(b.ensure("0", GroupStart, ""), "after-removal 0-0", `- groups: g = x|T-9
			+ main @g: at 0-0
			+ retry @g: at 0-0
			+ groups: g = 0-0|T
			+ meta: retain = forever
			+ meta: by = found`)
	}},
	{"group: a newer format is refused", func(b *bench) {
		for _, f := range []string{"2", "2.1", "10"} {
			b.given("meta: format = " + f)
			if got := b.ensure("0", GroupStart, "5000"); !strings.Contains(got, "FORMAT "+f+" is newer than 1") {
				b.failf("%s", got)
			}
			b.then("", "", "")
		}
		for _, f := range []string{"1", "1.9", "0", "junk"} {
			b.do("DEL", b.k.Main, b.k.Retry, b.k.Groups, b.k.Stream.Meta)
			b.given("meta: format = " + f)
			b.then(b.ensure("0", GroupStart, ""), "created 0-0", "+ main @g: at 0-0\n+ retry @g: at 0-0\n+ groups: g = 0-0|T")
		}
	}},
	{"group: streams of the wrong type", func(b *bench) {
		b.given("meta: format = 1\nretry = oops")
		if got := b.ensure("0", GroupStart, ""); got != "created 0-0" { // what fails waits; the rest goes on
			b.failf("%s, want the group made without its retry stream", got)
		}
		b.given("main = oops")
		if got := b.ensure("0", GroupStart, ""); !strings.Contains(got, "WRONGTYPE") || !strings.Contains(got, b.k.Main) {
			b.failf("%s, want WRONGTYPE and the key", got)
		}
		b.do("DEL", b.k.Stream.Meta)
		if b.ensure("0", GroupCreate, ""); b.do("EXISTS", b.k.Stream.Meta) != int64(0) {
			b.failf("a key of another type, and something was written")
		}
	}},
}
