package chaos

import (
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// base is what profiles have in common.
func base(name, about string) Profile {
	return Profile{
		Name: name, About: about, Workers: 4, Concurrency: 16, Fail: 25, MaxRetries: 3, Work: 20 * ms, Visibility: 2 * s,
		Bounds: Bounds{Repeats: -1, Recovery: 4 * s, Resume: 5 * s, Drain: 60 * s, LogLines: 30, CPU: 0.25},
	}
}

// Profiles are all there are.
func Profiles() []Profile {
	return []Profile{short(), kills(), intakes(), naps(), deploys(), restarts(), powercuts(), freezes(), network(), refusals(), full(), wrongtype(), mixed(), groups(), deletes(), failovers(), shards(), moves(), soak()}
}

// short is for continuous integration.
func short() Profile {
	p := base("short", "handlers, batches and pulls under kills, one freeze past the lease, memory full once, scripts flushed throughout; for CI")
	p.Messages, p.Rate, p.Workers, p.For, p.Visibility = 20_000, 800, 3, 25*s, 2*s
	p.Intakes = worker.Intakes
	p.Faults = []Fault{
		{Kind: Kill, First: 1 * s, Every: 400 * ms},
		{Kind: Flush, First: 200 * ms, Every: 150 * ms},
		{Kind: Freeze, First: 8 * s, Lasts: 4 * s},
		{Kind: Full, First: 16 * s, Lasts: 2 * s},
	}
	p.Bounds.Repeats = 0.25 // few are held, and a loaded machine acks late
	return p
}

// kills is the big one.
func kills() Profile {
	p := base("kills", "200,000 messages, 6 workers, one SIGKILL every 400 ms")
	p.Messages, p.Rate, p.Workers, p.For, p.Work = 200_000, 1250, 6, 160*s, 50*ms
	p.Faults = []Fault{{Kind: Kill, First: 1 * s, Every: 400 * ms}}
	p.Bounds.Repeats, p.Bounds.Drain = 0.0144, 180*s
	return p
}

// intakes has two workers of each intake: handlers, batches, pulls.
func intakes() Profile {
	p := base("intakes", "kills of workers with handlers, with batches and with pulls, two each, stopped and deployed as well")
	p.Messages, p.Rate, p.Workers, p.For, p.Intakes = 60_000, 1000, 6, 60*s, worker.Intakes
	p.Faults = []Fault{
		{Kind: Kill, First: 1 * s, Every: 400 * ms},
		{Kind: Sleep, First: 3 * s, Every: 7 * s, Lasts: 4 * s},
		{Kind: Deploy, First: 10 * s, Every: 20 * s},
	}
	return p
}

// naps stops workers past their lease and wakes them.
func naps() Profile {
	p := base("naps", "SIGSTOP of workers past their lease, and SIGCONT")
	p.Messages, p.Rate, p.Workers, p.For = 40_000, 1000, 6, 40*s
	p.Faults = []Fault{{Kind: Sleep, First: 1 * s, Every: 1 * s, Lasts: 4 * s}}
	return p
}

// deploys replaces every worker again and again.
func deploys() Profile {
	p := base("deploys", "rolling deploys by SIGTERM")
	p.Messages, p.Rate, p.For = 30_000, 1000, 30*s
	p.Faults = []Fault{{Kind: Deploy, First: 1 * s, Every: 3 * s}}
	p.Bounds.Once = true
	return p
}

// restarts kills a server that syncs always; nothing may be lost.
func restarts() Profile {
	p := base("restarts", "SIGKILL of a server with appendfsync always, and of workers")
	p.Messages, p.Rate, p.For, p.Fsync = 20_000, 500, 40*s, "always"
	p.Faults = []Fault{{Kind: Restart, First: 3 * s, Every: 8 * s, Lasts: 1 * s}, {Kind: Kill, First: 2 * s, Every: 2 * s}}
	return p
}

// powercuts makes a server that syncs once a second forget its last second.
func powercuts() Profile {
	p := base("powercuts", "appendfsync everysec, and the last second of the file gone at each kill of the server")
	p.Messages, p.Rate, p.For, p.Fsync = 20_000, 500, 40*s, "everysec"
	p.Faults = []Fault{{Kind: PowerCut, First: 3 * s, Every: 8 * s, Lasts: 1 * s}, {Kind: Kill, First: 2 * s, Every: 2 * s}}
	p.Bounds.Reruns, p.Bounds.Beside = true, true
	return p
}

// freezes stops the server for longer than leases last.
func freezes() Profile {
	p := base("freezes", "the server frozen past the lease")
	p.Messages, p.Rate, p.For = 20_000, 500, 40*s
	p.Faults = []Fault{{Kind: Freeze, First: 2 * s, Every: 8 * s, Lasts: 4 * s}}
	p.Bounds.Once = true
	return p
}

// network breaks the workers' and the producer's connections.
func network() Profile {
	p := base("network", "connections cut, slow and half open, for all at once")
	p.Messages, p.Rate, p.For, p.Proxied = 20_000, 500, 40*s, true
	p.Faults = []Fault{
		{Kind: Cut, First: 2 * s, Every: 6 * s, Lasts: 500 * ms},
		{Kind: Slow, First: 4 * s, Every: 6 * s, Lasts: 1 * s},
		{Kind: Hole, First: 6 * s, Every: 9 * s, Lasts: 3 * s},
	}
	return p
}

// refusals makes the server refuse.
func refusals() Profile {
	p := base("refusals", "memory full, script busy, read-only, connections killed, scripts flushed, and workers killed")
	p.Messages, p.Rate, p.For = 30_000, 600, 50*s
	p.Faults = []Fault{
		{Kind: Full, First: 2 * s, Every: 12 * s, Lasts: 3 * s},
		{Kind: Busy, First: 5 * s, Every: 12 * s, Lasts: 3 * s},
		{Kind: ReadOnly, First: 8 * s, Every: 12 * s, Lasts: 3 * s},
		{Kind: Hangup, First: 1 * s, Every: 2 * s},
		{Kind: Flush, First: 100 * ms, Every: 100 * ms},
		{Kind: Kill, First: 2 * s, Every: 2 * s},
	}
	return p
}

// full kills every worker while the memory is full: those in their place must take over, and a backlog drain.
func full() Profile {
	p := base("full", "memory full for long, with a backlog, and every worker replaced meanwhile")
	p.Messages, p.Rate, p.For, p.Fail, p.Concurrency, p.Work = 2500, 2000, 14*s, 0, 4, 200*ms
	p.Faults = []Fault{{Kind: Full, First: 1 * s, Lasts: 8 * s}, {Kind: Kill, First: 1500 * ms, Every: 400 * ms}}
	p.Bounds.Newcomers = 100
	return p
}

// wrongtype puts a key of another type where failures wait: they stay in flight until it is gone.
func wrongtype() Profile {
	p := base("wrongtype", "a key of another type where failures wait")
	p.Messages, p.Rate, p.For = 10_000, 500, 20*s
	p.Faults = []Fault{{Kind: Type, First: 1 * s, Every: 4 * s, Lasts: 1 * s}}
	p.Bounds.Once, p.Bounds.CPU = true, 1 // they go on with all that does not fail
	return p
}

// mixed stops workers for longer than some of the leases last, and shorter than the others: only the former may be taken over.
func mixed() Profile {
	p := base("mixed", "workers of two visibility timeouts, stopped for longer than the one and shorter than the other")
	p.Messages, p.Rate, p.For, p.Longer = 20_000, 700, 28*s, 20*s
	p.Faults = []Fault{{Kind: Sleep, First: 1 * s, Every: 1500 * ms, Lasts: 5 * s}}
	p.Bounds.Drain = 90 * s
	return p
}

// groups destroys the group, its retry stream's group, and its lease records, with messages in flight.
func groups() Profile {
	p := base("groups", "the group and its records destroyed under load, and workers killed")
	p.Messages, p.Rate, p.For = 20_000, 500, 40*s
	p.Faults = []Fault{
		{Kind: Destroy, First: 2 * s, Every: 6 * s},
		{Kind: Destroy2, First: 4 * s, Every: 6 * s},
		{Kind: Records, First: 6 * s, Every: 6 * s},
		{Kind: Kill, First: 3 * s, Every: 3 * s},
	}
	p.Bounds.Reruns, p.Bounds.Beside = true, true
	return p
}

// deletes deletes the stream: what is in it is gone, what comes later is not.
func deletes() Profile {
	p := base("deletes", "the stream deleted under load")
	p.Messages, p.Rate, p.For = 10_000, 500, 15*s
	p.Faults = []Fault{{Kind: Delete, First: 2 * s, Every: 5 * s}}
	p.Bounds.Reruns, p.Bounds.Beside = true, true
	return p
}

// failovers kills the master again and again; a publish counts when the replica has it.
func failovers() Profile {
	p := base("failovers", "sentinel failovers, publishes confirmed by the replica, and workers killed")
	p.Messages, p.Rate, p.For, p.Site, p.Replicas = 30_000, 500, 60*s, "sentinel", 1
	p.Faults = []Fault{{Kind: Failover, First: 3 * s, Every: 14 * s}, {Kind: Kill, First: 2 * s, Every: 3 * s}}
	p.Bounds.Reruns, p.Bounds.Beside = true, true
	return p
}

// shards kills the master of the stream's slot and moves the slot.
func shards() Profile {
	p := base("shards", "cluster: the stream's master killed, its slot moved, publishes confirmed by the replica, and workers killed")
	p.Messages, p.Rate, p.For, p.Site, p.Replicas = 30_000, 500, 60*s, "cluster", 1
	p.Faults = []Fault{{Kind: Failover, First: 4 * s, Every: 18 * s}, {Kind: Migrate, First: 13 * s, Every: 18 * s}, {Kind: Kill, First: 2 * s, Every: 3 * s}}
	p.Bounds.Reruns, p.Bounds.Beside = true, true
	return p
}

// moves moves the stream's slot to and fro and kills no node: no lease may be lost by it, and nothing runs twice.
func moves() Profile {
	p := base("moves", "cluster: the stream's slot moved again and again")
	p.Messages, p.Rate, p.For, p.Site = 15_000, 500, 30*s, "cluster"
	p.Faults = []Fault{{Kind: Migrate, First: 3 * s, Every: 5 * s}}
	p.Bounds.Once = true
	return p
}

// soak mixes everything that loses nothing, for half an hour.
func soak() Profile {
	p := base("soak", "30 minutes of all faults that may lose nothing; leaks are looked for")
	p.Messages, p.Rate, p.For, p.Fsync, p.Proxied, p.Sample = 540_000, 300, 30*60*s, "always", true, true
	p.Faults = []Fault{
		{Kind: Kill, First: 2 * s, Every: 3 * s},
		{Kind: Sleep, First: 3 * s, Every: 23 * s, Lasts: 4 * s},
		{Kind: Deploy, First: 20 * s, Every: 67 * s},
		{Kind: Restart, First: 30 * s, Every: 97 * s, Lasts: 1 * s},
		{Kind: Freeze, First: 50 * s, Every: 101 * s, Lasts: 4 * s},
		{Kind: Full, First: 70 * s, Every: 103 * s, Lasts: 3 * s},
		{Kind: Busy, First: 90 * s, Every: 107 * s, Lasts: 3 * s},
		{Kind: ReadOnly, First: 110 * s, Every: 109 * s, Lasts: 3 * s},
		{Kind: Hangup, First: 15 * s, Every: 31 * s},
		{Kind: Flush, First: 1 * s, Every: 1 * s},
		{Kind: Cut, First: 25 * s, Every: 41 * s, Lasts: 500 * ms},
		{Kind: Slow, First: 35 * s, Every: 43 * s, Lasts: 2 * s},
		{Kind: Hole, First: 45 * s, Every: 79 * s, Lasts: 3 * s},
	}
	return p
}
