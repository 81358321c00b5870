package xstreamq

import (
	"strconv"
	"strings"
)

// server makes the checks of one master.
func (e *examination) server(n Server) {
	e.eviction(n)
	e.persistence(n)
	e.replicas(n)
	e.version(n)
	e.memory(n)
}

// hidden is a check that the server does not let us make.
func (e *examination) hidden(check, what string) {
	e.note(check, levelUnknown, "Look it up at the provider of the server, or allow the user "+what+".", "the server does not tell: %s is missing or refused", what)
}

func (e *examination) eviction(n Server) {
	policy, ok := n.Info["maxmemory_policy"]
	const fix = "CONFIG SET maxmemory-policy noeviction, and in the server's configuration."
	switch {
	case !ok:
		e.hidden(checkEviction, "INFO memory")
	case policy == "noeviction":
		e.note(checkEviction, levelOK, "", "noeviction: a full memory refuses messages, and loses none")
	case strings.HasPrefix(policy, "volatile-"):
		e.note(checkEviction, levelWarn, fix, "%s: a full memory evicts the markers that keep messages from being handled twice", policy)
	case n.Info["maxmemory"] == "0":
		e.note(checkEviction, levelWarn, fix, "%s: as soon as maxmemory is set, a full memory evicts whole streams", policy)
	default:
		e.note(checkEviction, levelFail, fix, "%s: a full memory evicts whole streams, with their groups", policy)
	}
}

func (e *examination) persistence(n Server) {
	aof, told := n.Info["aof_enabled"]
	save, saveTold := n.Config["save"]
	const on = "CONFIG SET appendonly yes, and in the server's configuration."
	switch {
	case !told:
		e.hidden(checkAOF, "INFO persistence")
	case aof == "1" && n.Info["aof_last_write_status"] == "err":
		e.note(checkAOF, levelFail, "Make room on its disk; until then the server refuses writes.", "the last write to the append-only file failed")
	case n.Info["rdb_last_bgsave_status"] == "err":
		e.note(checkAOF, levelFail, "Make room on its disk, or see the server's log; until a snapshot succeeds it may refuse writes.", "the last snapshot failed")
	case aof == "1" && n.Info["aof_last_bgrewrite_status"] == "err":
		e.note(checkAOF, levelWarn, "Make room on its disk, or see the server's log.", "the last rewrite of the append-only file failed: it grows")
	case aof == "1":
		e.note(checkAOF, levelOK, "", "the append-only file is on")
	case saveTold && save == "":
		e.note(checkAOF, levelFail, on, "neither the append-only file nor snapshots are on: a restart loses every message")
	default:
		e.note(checkAOF, levelWarn, on, "the append-only file is off: a crash loses every message since the last snapshot")
	}
	fsync, fsyncTold := n.Config["appendfsync"]
	switch {
	case told && aof != "1":
		e.note(checkFsync, levelOK, "", "no append-only file to sync")
	case !fsyncTold:
		e.hidden(checkFsync, "CONFIG GET")
	case fsync == "no":
		e.note(checkFsync, levelWarn, "CONFIG SET appendfsync everysec (or always), and in the server's configuration.",
			"appendfsync no: a power cut may lose half a minute of confirmed messages")
	case fsync == "always":
		e.note(checkFsync, levelOK, "", "appendfsync always: a power cut loses no confirmed message")
	default:
		e.note(checkFsync, levelOK, "", "appendfsync %s: a power cut may lose a second or two of confirmed messages", fsync)
	}
}

func (e *examination) replicas(n Server) {
	role, ok := n.Info["role"]
	if !ok {
		e.hidden(checkReplicas, "INFO replication")
		return
	}
	total, online := 0, 0
	for name, value := range n.Info {
		if number, of := strings.CutPrefix(name, "slave"); of {
			if _, err := strconv.Atoi(number); err == nil {
				total++
				if strings.Contains(value, "state=online") {
					online++
				}
			}
		}
	}
	switch least := n.Config["min-replicas-to-write"]; {
	case role != "master":
		e.note(checkReplicas, levelFail, "Connect to the master, by Sentinel or cluster URL where there is one.", "this server is a replica: it takes no messages")
	case total == 0:
		e.note(checkReplicas, levelWarn, "Add a replica, with Sentinel or a cluster for the failover.", "no replica: what the machine loses is lost")
	case online < total:
		e.note(checkReplicas, levelWarn, "See the log of the replica that is not online.", "%d of %d replicas are online", online, total)
	case least == "0":
		e.note(checkReplicas, levelOK, "", "%s online; min-replicas-to-write is 0, so a master that lost them goes on alone", counted(int64(online), "replica", "replicas"))
	default:
		e.note(checkReplicas, levelOK, "", "%s online", counted(int64(online), "replica", "replicas"))
	}
}

func (e *examination) version(n Server) {
	if v := n.Info["valkey_version"]; v != "" { // redis_version there is what it is compatible with
		e.note(checkVersion, levelOK, "", "Valkey %s", v)
		return
	}
	v := n.Info["redis_version"]
	var part [3]int
	for i, s := range strings.SplitN(v, ".", 3) {
		part[i], _ = strconv.Atoi(s) // "" and what is no number count as 0
	}
	switch {
	case v == "":
		e.hidden(checkVersion, "INFO server")
	case part[0] < 6 || part[0] == 6 && part[1] < 2:
		e.note(checkVersion, levelFail, "Upgrade to Redis 6.2 or later, or to Valkey.", "Redis %s lacks commands that everything depends on", v)
	case part[0] == 7 && part[1] == 2 && part[2] < 7 && n.Info["cluster_enabled"] == "1":
		e.note(checkVersion, levelWarn, "Upgrade to 7.2.7 or later before slots are moved.",
			"Redis %s may crash when a slot migrates whose stream is being read", v)
	default:
		e.note(checkVersion, levelOK, "", "Redis %s", v)
	}
}

func (e *examination) memory(n Server) {
	used, err := strconv.ParseFloat(n.Info["used_memory"], 64)
	limit, err2 := strconv.ParseFloat(n.Info["maxmemory"], 64)
	if err != nil || err2 != nil {
		e.hidden(checkMemory, "INFO memory")
		return
	}
	const mib, drain = 1 << 20, "Start workers for what waits, purge dead letters, shorten retention, or raise maxmemory."
	share := 100 * used / max(limit, 1)
	switch {
	case limit == 0:
		e.note(checkMemory, levelWarn, "Set maxmemory below what the machine has, with noeviction.",
			"%.0f MiB used, and no maxmemory: when the machine has no more, the server is ended with all it holds", used/mib)
	case share >= 95:
		e.note(checkMemory, levelFail, drain, "%.0f of %.0f MiB used (%.0f %%): publishing fails, or soon will", used/mib, limit/mib, share)
	case share >= 80:
		e.note(checkMemory, levelWarn, drain, "%.0f of %.0f MiB used (%.0f %%)", used/mib, limit/mib, share)
	default:
		e.note(checkMemory, levelOK, "", "%.0f of %.0f MiB used (%.0f %%)", used/mib, limit/mib, share)
	}
}
