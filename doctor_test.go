package xstreamq_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/xstreamq/xstreamq"
	"github.com/xstreamq/xstreamq/internal/keys"
	"github.com/xstreamq/xstreamq/internal/redistest"
)

// doctor is what one check came to: level, detail, fix.
func (d *desk) doctor(check string) xstreamq.Finding {
	d.t.Helper()
	all, err := d.admin.Doctor(d.t.Context())
	d.must(err)
	i := slices.IndexFunc(all, func(f xstreamq.Finding) bool { return f.Check == check })
	if i < 0 {
		d.t.Fatalf("no check %q in %v", check, all)
	}
	if (all[i].Level == "ok") != (all[i].Fix == "") || all[i].Detail == "" {
		d.t.Errorf("%+v: what is not ok has a fix, and all has a detail", all[i])
	}
	return all[i]
}

// found holds a check to its level and text; numbers that change from run to run are N.
func (d *desk) found(check, level, detail string) {
	d.t.Helper()
	f := d.doctor(check)
	text := regexp.MustCompile(`\b\d+ of \d+ MiB|\b\d+ MiB`).ReplaceAllString(f.Detail, "N MiB")
	text = strings.ReplaceAll(text, d.prefix, "P:")
	if f.Level != level || !strings.Contains(text, detail) {
		d.t.Errorf("%s: %s %q, want %s %q", check, f.Level, text, level, detail)
	}
}

// answers rewrites what a server says of itself: other versions and managed servers are not at hand.
type answers struct {
	info   map[string]string // lines to replace; "" takes the line out
	refuse []string          // commands
}

func (a *answers) DialHook(next redis.DialHook) redis.DialHook { return next }

func (a *answers) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a *answers) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if slices.Contains(a.refuse, cmd.Name()) {
			return next(ctx, redis.NewCmd(ctx, "no-such-command-"+cmd.Name())) // the server's own words
		}
		err := next(ctx, cmd)
		if text, ok := cmd.(*redis.StringCmd); ok && cmd.Name() == "info" {
			var out []string
			for line := range strings.Lines(text.Val()) {
				name, _, _ := strings.Cut(line, ":")
				value, ok := a.info[name]
				switch {
				case ok && value != "":
					out = append(out, name+":"+value+"\r\n")
				case !ok:
					out = append(out, line)
				}
			}
			for name, value := range a.info {
				if value != "" && !strings.Contains(text.Val(), "\n"+name+":") {
					out = append(out, name+":"+value+"\r\n")
				}
			}
			text.SetVal(strings.Join(out, ""))
		}
		return err
	}
}

func TestDoctorServers(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--save", "3600 1", "--maxmemory", "512mb")
	said := &answers{}
	rdb := server.Client(t)
	rdb.AddHook(said)
	d := deskOn(t, rdb, redistest.Prefix(t))
	set := func(name, value string) { t.Helper(); d.do("config", "set", name, value) }
	say := func(more ...string) {
		said.info = map[string]string{}
		for i := 0; i < len(more); i += 2 {
			said.info[more[i]] = more[i+1]
		}
	}

	d.found("eviction policy", "ok", "noeviction")
	set("maxmemory-policy", "volatile-lru")
	d.found("eviction policy", "warn", "volatile-lru: a full memory evicts the markers")
	set("maxmemory-policy", "allkeys-lru")
	d.found("eviction policy", "fail", "allkeys-lru: a full memory evicts whole streams")
	set("maxmemory", "0")
	d.found("eviction policy", "warn", "as soon as maxmemory is set")
	d.found("memory", "warn", "N MiB used, and no maxmemory")
	set("maxmemory-policy", "noeviction")
	set("maxmemory", "512mb")
	d.found("eviction policy", "ok", "")
	d.found("memory", "ok", "N MiB used (0 %)")
	say("used_memory", "80", "maxmemory", "100")
	d.found("memory", "warn", "(80 %)")
	say("used_memory", "79", "maxmemory", "100")
	d.found("memory", "ok", "(79 %)")
	say("used_memory", "95", "maxmemory", "100")
	d.found("memory", "fail", "(95 %): publishing fails, or soon will")
	say("used_memory", "")
	d.found("memory", "unknown", "INFO memory is missing or refused")
	say("maxmemory_policy", "")
	d.found("eviction policy", "unknown", "INFO memory is missing or refused")
	say()

	d.found("aof", "ok", "the append-only file is on")
	set("appendonly", "no")
	d.found("aof", "warn", "since the last snapshot")
	d.found("fsync", "ok", "no append-only file to sync")
	set("save", "")
	d.found("aof", "fail", "a restart loses every message")
	set("appendonly", "yes")
	d.found("aof", "ok", "")
	for _, c := range []struct{ name, level, detail string }{
		{"aof_last_write_status", "fail", "the last write to the append-only file failed"},
		{"rdb_last_bgsave_status", "fail", "the last snapshot failed"},
		{"aof_last_bgrewrite_status", "warn", "the last rewrite of the append-only file failed"},
	} {
		say(c.name, "err")
		d.found("aof", c.level, c.detail)
	}
	say("aof_enabled", "")
	d.found("aof", "unknown", "INFO persistence")
	say()

	d.found("fsync", "ok", "appendfsync everysec: a power cut may lose a second or two")
	set("appendfsync", "no")
	d.found("fsync", "warn", "appendfsync no")
	set("appendfsync", "always")
	d.found("fsync", "ok", "loses no confirmed message")

	for _, c := range [][]string{
		{"6.0.16", "", "0", "fail", "Redis 6.0.16 lacks commands"},
		{"5.0.7", "", "0", "fail", "Redis 5.0.7"},
		{"6.2.0", "", "0", "ok", "Redis 6.2.0"},
		{"7.2.6", "", "1", "warn", "may crash when a slot migrates"},
		{"7.2.6", "", "0", "ok", "Redis 7.2.6"},
		{"7.2.7", "", "1", "ok", "Redis 7.2.7"},
		{"255.255.255", "", "1", "ok", "Redis 255.255.255"},
		{"7.2.4", "8.1.1", "1", "ok", "Valkey 8.1.1"},
		{"", "", "0", "unknown", "INFO server"},
	} {
		say("redis_version", c[0], "valkey_version", c[1], "cluster_enabled", c[2])
		d.found("version", c[3], c[4])
	}
	say()
	d.found("version", "ok", "")
}

func TestDoctorReplicas(t *testing.T) {
	t.Parallel()
	server, second := redistest.Start(t), redistest.Start(t)
	said := &answers{}
	rdb := server.Client(t)
	rdb.AddHook(said)
	d := deskOn(t, rdb, redistest.Prefix(t))
	d.found("replicas", "warn", "no replica")
	host, port, _ := strings.Cut(server.Addr(), ":")
	other := second.Client(t)
	d.must(other.ReplicaOf(t.Context(), host, port).Err())
	redistest.Eventually(t, patience, func() bool {
		return strings.Contains(d.rdb.Info(t.Context(), "replication").Val(), "state=online")
	}, "the replica is online")
	d.found("replicas", "ok", "1 replica online; min-replicas-to-write is 0")
	d.do("config", "set", "min-replicas-to-write", "1")
	d.found("replicas", "ok", "1 replica online")
	d.do("config", "set", "min-replicas-to-write", "0")
	said.info = map[string]string{"slave0": "ip=127.0.0.1,port=1,state=wait_bgsave,offset=0,lag=0"}
	d.found("replicas", "warn", "0 of 1 replicas are online")
	said.info = nil
	deskOn(t, other, d.prefix).found("replicas", "fail", "this server is a replica")
	d.must(other.ReplicaOf(t.Context(), "no", "one").Err())
	redistest.Eventually(t, patience, func() bool {
		return strings.Contains(d.rdb.Info(t.Context(), "replication").Val(), "connected_slaves:0")
	}, "the replica is gone")
	d.found("replicas", "warn", "no replica")
	said.info = map[string]string{"role": ""}
	d.found("replicas", "unknown", "INFO replication")
}

// Managed servers refuse CONFIG, and parts of INFO; some lack the commands.
func TestDoctorUnknown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	rdb := server.Client(t)
	d := deskOn(t, rdb, redistest.Prefix(t))
	d.make("g")
	d.add(d.k.Main, "*", "body", "x")
	d.bury("x")
	levels := func(rules ...any) string {
		t.Helper()
		d.do(append([]any{"acl", "setuser", "some", "reset", "on", ">p", "~*", "+@all"}, rules...)...)
		some := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "some", Password: "p"})
		defer func() { _ = some.Close() }()
		all, err := deskOn(t, some, d.prefix).admin.Doctor(t.Context())
		d.must(err)
		var out []string
		for _, f := range all {
			out = append(out, f.Check+" "+f.Level)
		}
		return strings.Join(out, ", ")
	}
	const stored = "ids ahead of the clock ok, expiry of keys ok, stale consumers ok, groups that pin history ok, dead letters warn, compaction ok"
	d.equal("all rights", levels(), "eviction policy ok, aof fail, fsync ok, replicas warn, version ok, memory warn, "+stored)
	d.equal("no CONFIG", levels("-config"), "eviction policy ok, aof warn, fsync ok, replicas warn, version ok, memory warn, "+stored)
	d.equal("no INFO", levels("-info"), "eviction policy unknown, aof unknown, fsync ok, replicas unknown, version unknown, memory unknown, "+stored)
	d.equal("neither", levels("-info", "-config"), "eviction policy unknown, aof unknown, fsync unknown, replicas unknown, version unknown, memory unknown, "+stored)
	d.equal("no scripts", levels("-@scripting"), "eviction policy ok, aof fail, fsync ok, replicas warn, version ok, memory warn, "+
		"ids ahead of the clock unknown, expiry of keys ok, stale consumers ok, groups that pin history ok, dead letters unknown, compaction ok")
	d.equal("no sets", levels("-smembers"), "eviction policy ok, aof fail, fsync ok, replicas warn, version ok, memory warn, "+
		"ids ahead of the clock unknown, expiry of keys unknown, stale consumers unknown, groups that pin history unknown, dead letters unknown, compaction unknown")

	said := &answers{refuse: []string{"info", "config"}}
	rdb.AddHook(said)
	for _, check := range []string{"eviction policy", "aof", "fsync", "replicas", "version", "memory"} {
		d.found(check, "unknown", "is missing or refused")
	}
	d.found("dead letters", "warn", "")
	some, err := d.admin.Servers(t.Context())
	d.must(err)
	d.equal("refused", fmt.Sprint(some), "[{ map[] map[]}]")
	said.refuse = nil
	all, err := d.admin.Servers(t.Context())
	d.must(err)
	if one := all[0]; len(all) != 1 || one.Addr != "" || one.Info["role"] != "master" || one.Config["appendfsync"] == "" {
		t.Errorf("servers: %v", all)
	}
	server.Kill()
	_, err = d.admin.Doctor(t.Context())
	d.is(err, xstreamq.ErrUnavailable)
	_, err = d.admin.Servers(t.Context())
	d.is(err, xstreamq.ErrUnavailable)
}

func TestDoctorStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, check := range []string{"ids ahead of the clock", "expiry of keys", "stale consumers", "groups that pin history", "dead letters", "compaction"} {
		d.found(check, "ok", "(0 streams, 0 groups)")
	}
	d.make("g")
	ms := func(ago time.Duration) int64 { return d.now().Add(-ago).UnixMilli() }
	quiet := func(check string) { t.Helper(); d.found(check, "ok", "(1 stream, 1 group)") }

	quiet("expiry of keys")
	d.do("expire", d.k.Main, 7200)
	d.found("expiry of keys", "fail", `stream "s": key "P:{s}" expires in 2h0m, with all it holds`)
	d.do("persist", d.k.Main)
	quiet("expiry of keys")
	for _, key := range []string{
		d.k.Stream.Due, d.k.Stream.Parked, d.k.Groups, d.k.Stream.Meta, d.k.Retry, d.k.DLQ, d.k.Due, d.k.Parked, d.k.Workers, d.k.Meta,
	} {
		if d.rdb.Exists(t.Context(), key).Val() == 0 { // any type will do for this check's own reads, but those of the others
			d.do("copy", map[bool]string{true: d.k.Main, false: d.k.Groups}[key == d.k.DLQ || key == d.k.Retry], key)
			defer d.do("del", key)
		}
		d.do("expire", key, 90)
		if f := d.doctor("expiry of keys"); f.Level != "fail" || !strings.Contains(f.Detail, fmt.Sprintf("%q", key)) {
			t.Errorf("%s: %+v", key, f)
		}
		d.do("persist", key)
	}
	d.do("del", d.k.Stream.Due, d.k.Stream.Parked, d.k.Due, d.k.Parked, d.k.Workers, d.k.Meta)
	quiet("expiry of keys")

	quiet("ids ahead of the clock")
	now := d.now()
	d.add(d.k.Main, fmt.Sprintf("%d-0", now.UnixMilli()), "body", "x")
	quiet("ids ahead of the clock")
	ahead := d.add(d.k.Main, fmt.Sprintf("%d-0", now.Add(3*time.Hour).UnixMilli()), "body", "x")
	d.found("ids ahead of the clock", "warn", ahead+" is ahead of the server's clock by 3h0m")
	d.read(d.k.Main, "g", "w", 2)
	d.do("del", d.k.Workers)
	d.do("xdel", d.k.Main, ahead)
	d.found("ids ahead of the clock", "warn", ahead+" is ahead")
	d.do("xgroup", "setid", d.k.Main, "g", "$")
	d.do("xgroup", "setid", d.k.Main, "g", "5-0")
	quiet("ids ahead of the clock")
	d.do("xgroup", "delconsumer", d.k.Main, "g", "w")

	d.do("del", d.k.Main, d.k.Retry)
	d.make("g")
	d.add(d.k.Main, "5-0", "body", "x")
	d.add(d.k.Main, "6-0", "body", "x")
	quiet("groups that pin history") // just made
	created := func(ago time.Duration) { d.do("hset", d.k.Groups, "g", fmt.Sprintf("0-0|%d", ms(ago))) }
	created(2 * time.Hour)
	d.found("groups that pin history", "warn", `"s/g": nobody has read it for 2h0m, and it needs messages`)
	d.do("hset", d.k.Meta, "swept", ms(time.Minute))
	quiet("groups that pin history")
	d.do("hset", d.k.Meta, "swept", ms(time.Hour))
	d.found("groups that pin history", "warn", "for 1h0m")
	d.register("w")
	quiet("groups that pin history")
	d.do("hdel", d.k.Workers, "w")
	d.read(d.k.Main, "g", "w", 2)
	d.do("xack", d.k.Main, "g", "5-0")
	d.do("xclaim", d.k.Main, "g", "w", 0, "6-0", "idle", 7_200_000)
	d.do("hdel", d.k.Workers, "w")
	quiet("groups that pin history") // read just now, by w
	d.found("stale consumers", "ok", "")
	d.do("xgroup", "destroy", d.k.Main, "g")
	d.found("groups that pin history", "fail", `"s/g": Redis has lost the group`)
	d.do("xgroup", "create", d.k.Main, "g", "$")
	quiet("groups that pin history")

	quiet("dead letters")
	d.add(d.k.DLQ, fmt.Sprintf("%d-0", ms(2*time.Hour)), "body", "x", "reason", "retries")
	quiet("dead letters")
	d.bury("x")
	d.found("dead letters", "warn", `"s/g": 1 in the last hour, 2 in all`)
	for range 600 {
		d.bury("x")
	}
	d.found("dead letters", "warn", "250 or more in the last hour, 602 in all")
	d.do("del", d.k.DLQ)
	quiet("dead letters")
}

func TestDoctorConsumers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.make("g")
	d.add(d.k.Main, "5-0", "body", "x")
	d.register("w")
	d.read(d.k.Main, "g", "w", 1)
	d.found("stale consumers", "ok", "")
	d.lapsed("w")
	d.found("stale consumers", "warn", `"s/g": "w" holds 1, its lease ended 2h59m ago, and nobody took over`)
	d.do("hdel", d.k.Workers, "w")
	d.found("stale consumers", "ok", "")
	d.do("xack", d.k.Main, "g", "5-0")
	d.found("stale consumers", "ok", "")

	// How long Redis has not seen a consumer cannot be set: its answer is.
	said := &idleHook{}
	d.rdb.AddHook(said)
	said.idle = 25 * time.Hour.Milliseconds()
	d.found("stale consumers", "warn", `"w" holds nothing, and was last seen 25h0m ago`)
	said.idle = 23 * time.Hour.Milliseconds()
	d.found("stale consumers", "ok", "")
	d.add(d.k.Main, "6-0", "body", "x")
	d.read(d.k.Main, "g", "w", 1)
	d.found("stale consumers", "warn", `"w" holds 1, and was last seen 23h0m ago`)
	d.must(d.rdb.XAck(t.Context(), d.k.Main, "g", "6-0").Err())
	d.must(d.group().RemoveConsumer(t.Context(), "w"))
	d.found("stale consumers", "ok", "")
}

// idleHook makes consumers look idle.
type idleHook struct{ idle int64 }

func (h *idleHook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (h *idleHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *idleHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			c, ok := cmd.(*redis.Cmd)
			if !ok || len(cmd.Args()) < 2 || cmd.Args()[1] != "consumers" {
				continue
			}
			list, _ := c.Val().([]any)
			for _, row := range list {
				switch m := row.(type) {
				case map[any]any:
					m["idle"] = h.idle
				case []any:
					m[slices.Index(m, any("idle"))+1] = h.idle
				}
			}
		}
		return err
	}
}

func TestDoctorCompaction(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.do("sadd", d.k.Registry(), d.k.Member(""))
	d.fill(9999, "4")
	d.found("compaction", "ok", "")
	d.add(d.k.Main, "5-0", "body", "x")
	d.found("compaction", "warn", `stream "s": 10000 entries and no group`)
	d.make("g")
	d.do("hdel", d.k.Stream.Meta, "retain", "by")
	d.found("compaction", "warn", "10000 entries, and no worker that would trim")
	d.register("w")
	d.found("compaction", "ok", "")
	d.do("hset", d.k.Stream.Meta, "retain", "forever", "by", "found")
	d.found("compaction", "warn", "all kept, since it had a history before its first group")
	d.must(d.stream().SetRetention(t.Context(), -1))
	d.found("compaction", "ok", "")
}

// What one stream comes to does not hide the others; many are named by three.
func TestDoctorOfMany(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i := range 6 {
		k := keys.NewStream(d.prefix, fmt.Sprintf("s%d", i)).Group("g")
		created, err := d.admin.Group(k.Name, "g").Create(t.Context(), xstreamq.Head)
		d.must(err)
		d.equal("created", created, true)
		d.add(k.DLQ, "*", "body", "x", "reason", "retries")
	}
	d.do("sadd", d.k.Registry(), `["s3x",""]`)
	d.do("set", keys.NewStream(d.prefix, "s3x").Main, "oops")
	d.found("dead letters", "warn", `"s0/g": 1 in the last hour, 1 in all; "s1/g": 1 in the last hour, 1 in all; "s2/g": 1 in the last hour, 1 in all; and 3 more`)
	d.found("compaction", "unknown", `stream "s3x": key P:{s3x}: WRONGTYPE`)
	d.unchanged("Doctor", func() { d.doctor("aof") })
}

func TestDoctorOfCluster(t *testing.T) {
	t.Parallel()
	rdb := redistest.Cluster(t).Client(t)
	c, err := xstreamq.New(rdb)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for i := range 8 {
		if _, err := c.Admin().Group(fmt.Sprintf("s%d", i), "g").Create(t.Context(), xstreamq.Head); err != nil {
			t.Fatal(err)
		}
	}
	all, err := c.Admin().Doctor(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		switch f.Check {
		case "replicas":
			if f.Level != "warn" || strings.Count(f.Detail, "node 127.0.0.1:") != 3 {
				t.Errorf("%+v", f)
			}
		case "dead letters":
			if f.Level != "ok" || f.Detail != "none in the last hour (8 streams, 8 groups)" {
				t.Errorf("%+v", f)
			}
		}
	}
}
