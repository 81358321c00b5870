// Package chaos runs workers and a producer on a server, breaks all three on a schedule, and judges what the ledger says.
package chaos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/worker"
)

// Kind is a kind of fault.
type Kind string

// Faults of workers, of the server, and of the network between.
const (
	Kill   Kind = "kill"   // SIGKILL of a worker; another one starts in its place
	Sleep  Kind = "sleep"  // SIGSTOP of a worker, SIGCONT after Lasts
	Deploy Kind = "deploy" // each worker in turn gets SIGTERM and is replaced

	Restart  Kind = "restart"  // SIGKILL of the server; it starts again after Lasts
	PowerCut Kind = "powercut" // likewise, and what it appended in its last second is gone
	Freeze   Kind = "freeze"   // SIGSTOP of the server, SIGCONT after Lasts
	Full     Kind = "full"     // maxmemory below what is used, back after Lasts
	Busy     Kind = "busy"     // a script that does not end, killed after Lasts
	ReadOnly Kind = "readonly" // the server is made a replica of nothing, and a master again after Lasts
	Hangup   Kind = "hangup"   // CLIENT KILL of every connection
	Destroy  Kind = "destroy"  // XGROUP DESTROY of the group
	Destroy2 Kind = "destroy2" // XGROUP DESTROY of the retry stream's group
	Records  Kind = "records"  // DEL of the workers' lease records
	Delete   Kind = "delete"   // DEL of the stream
	Type     Kind = "type"     // where failures wait lies a key of another type, for Lasts
	Flush    Kind = "flush"    // SCRIPT FLUSH
	Failover Kind = "failover" // SIGKILL of the master; when another has its place, it comes back as that one's replica
	Migrate  Kind = "migrate"  // the stream's slot moves to another master of the cluster

	Cut  Kind = "cut"  // every connection through the proxy closed, and refused for Lasts
	Slow Kind = "slow" // every piece of data 50 ms late, for Lasts
	Hole Kind = "hole" // connections swallow everything for Lasts, then are reset
)

// lane is where a fault is run: those of one lane come one after the other.
func (k Kind) lane() string {
	switch k {
	case Kill, Sleep:
		return "workers"
	case Deploy:
		return "deploys"
	case Flush:
		return "flushes"
	case Cut, Slow, Hole:
		return "network"
	}
	return "server"
}

// Fault is one kind of a profile's faults.
type Fault struct {
	Kind  Kind
	First time.Duration // after the start
	Every time.Duration // from one's start to the next, a fifth earlier or later; 0 = once
	Lasts time.Duration
}

// Bounds are what a profile promises.
type Bounds struct {
	// Repeats is the most second successful runs, as a share of the messages held at a kill, of kills while the server
	// answers. Negative = no bound.
	Repeats float64
	// Once says that no message may be done twice.
	Once bool
	// Recovery is the longest that what a killed worker ran may wait for its next run, when it lost its first lease.
	Recovery time.Duration
	// Resume is the longest from the server's return to the next handler's start.
	Resume time.Duration
	// Drain is the longest from the last fault and publish until nothing is left to do.
	Drain time.Duration
	// Beside admits second owners beside a live one: the network kept a worker from its lease, or the group was destroyed.
	Beside bool
	// Reruns admits that confirmed settlements are undone: the server lost them, or the group.
	Reruns bool
	// CPU is the most that a worker may use in an outage, as a share of a core: it waits, and does not spin.
	CPU float64
	// Newcomers is the least number of handler runs, while the memory is full, by workers that started meanwhile.
	Newcomers int
	// LogLines is the most lines that a worker logs a minute, on average.
	LogLines float64
}

// Profile is one trial.
type Profile struct {
	Name, About          string
	Messages             int64
	Rate                 int // publishes a second
	Workers, Concurrency int
	Fail, MaxRetries     int           // percent; failures survived
	Work                 time.Duration // handlers take 0 to this
	Visibility           time.Duration
	Longer               time.Duration // the visibility of every second worker, where it is another
	Dedupe               time.Duration
	Intakes              []worker.Intake // of the workers, in turn; none = all have handlers
	Fsync                string          // appendfsync; "" = nothing is kept on disk
	Proxied              bool
	Site                 string // "": one server; sentinel: a master, a replica, three sentinels; cluster: three masters with a replica each
	Replicas             int    // that must have a publish before it counts as confirmed
	Faults               []Fault
	For                  time.Duration // faults go on for so long
	Bounds               Bounds
	Sample               bool // compare the first worker's heap and goroutines at the end with those at a sixth of For; it is spared all faults
}

// Event is one fault on the schedule.
type Event struct {
	At    time.Duration
	Kind  Kind
	Lasts time.Duration
	Draw  uint64 // chooses the victim
}

// Schedule lays out all faults beforehand; the same for the same seed.
func (p *Profile) Schedule(seed uint64) []Event {
	var list []Event
	for i, f := range p.Faults {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		for n := 0; ; n++ {
			at := f.First + time.Duration(n)*f.Every
			if n > 0 {
				at += time.Duration((r.Float64() - 0.5) * 0.4 * float64(f.Every))
			}
			if at+f.Lasts > p.For || n > 0 && f.Every == 0 {
				break
			}
			list = append(list, Event{At: at, Kind: f.Kind, Lasts: f.Lasts, Draw: r.Uint64()})
		}
	}
	slices.SortStableFunc(list, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return list
}

// Find is the profile of that name.
func Find(name string) (*Profile, error) {
	for _, p := range Profiles() {
		if p.Name == name {
			return &p, nil
		}
	}
	return nil, fmt.Errorf("chaos: no profile %q", name)
}
