package dash

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq"
)

// figuresJSON are one server's figures; null is what it does not tell.
type figuresJSON struct {
	Addr           string   `json:"addr"`    // of a cluster's node, else ""
	Version        string   `json:"version"` // "" = not told, as role and eviction
	Role           string   `json:"role"`
	Replicas       *int64   `json:"replicas"`
	ReplicasOnline *int64   `json:"replicas_online"`
	UptimeMS       *int64   `json:"uptime_ms"`
	Clients        *int64   `json:"clients"`
	CommandRate    *int64   `json:"commands_per_second"`
	Memory         *int64   `json:"memory_bytes"`
	MemoryPeak     *int64   `json:"memory_peak_bytes"`
	MemoryMost     *int64   `json:"memory_most_bytes"` // maxmemory; 0 = no limit
	Eviction       string   `json:"eviction"`
	AOF            *bool    `json:"aof"`
	Fsync          *string  `json:"fsync"`
	Save           *string  `json:"save"` // when snapshots are taken, as CONFIG has it; "" = never
	SavedAt        *string  `json:"saved_at"`
	Unsaved        *int64   `json:"changes_since_save"`
	Errors         []string `json:"errors"` // what of persistence failed when it was last tried
}

type serverJSON struct {
	Servers []figuresJSON      `json:"servers"`
	Doctor  []xstreamq.Finding `json:"doctor"`
}

func (h *Handler) getServer(_ http.ResponseWriter, r *http.Request, verb Verb) (any, error) {
	if _, err := h.allowed(r, verb, query(r), "", "", ""); err != nil {
		return nil, err
	}
	servers, err := h.admin.Servers(r.Context())
	if err != nil {
		return nil, err
	}
	out := serverJSON{Servers: make([]figuresJSON, len(servers))}
	for i, s := range servers {
		out.Servers[i] = figures(s)
	}
	out.Doctor, err = h.admin.Doctor(r.Context())
	return out, err
}

func figures(s xstreamq.Server) figuresJSON {
	f := figuresJSON{
		Addr: s.Addr, Role: s.Info["role"], Eviction: s.Info["maxmemory_policy"],
		UptimeMS: told(s.Info, "uptime_in_seconds"), Clients: told(s.Info, "connected_clients"), CommandRate: told(s.Info, "instantaneous_ops_per_sec"),
		Memory: told(s.Info, "used_memory"), MemoryPeak: told(s.Info, "used_memory_peak"), MemoryMost: told(s.Info, "maxmemory"),
		Unsaved: told(s.Info, "rdb_changes_since_last_save"), Replicas: told(s.Info, "connected_slaves"), Errors: []string{},
	}
	if v := s.Info["valkey_version"]; v != "" { // redis_version there is what it is compatible with
		f.Version = "Valkey " + v
	} else if v := s.Info["redis_version"]; v != "" {
		f.Version = "Redis " + v
	}
	if f.UptimeMS != nil {
		*f.UptimeMS *= 1000
	}
	if f.Replicas != nil {
		var online int64
		for i := range *f.Replicas {
			if strings.Contains(s.Info["slave"+strconv.FormatInt(i, 10)], "state=online") {
				online++
			}
		}
		f.ReplicasOnline = &online
	}
	if v, ok := s.Info["aof_enabled"]; ok {
		on := v == "1"
		f.AOF = &on
	}
	if v, ok := s.Config["appendfsync"]; ok {
		f.Fsync = &v
	}
	if v, ok := s.Config["save"]; ok {
		f.Save = &v
	}
	// A server that never saved gives the time of its start.
	if at := told(s.Info, "rdb_last_save_time"); at != nil && cmp.Or(s.Info["rdb_saves"], "1") != "0" {
		f.SavedAt = stampPtr(time.Unix(*at, 0))
	}
	for _, c := range [][2]string{
		{"aof_last_write_status", "the last write to the append-only file failed"},
		{"aof_last_bgrewrite_status", "the last rewrite of the append-only file failed"},
		{"rdb_last_bgsave_status", "the last snapshot failed"},
	} {
		if s.Info[c[0]] == "err" {
			f.Errors = append(f.Errors, c[1])
		}
	}
	return f
}

// told is a number of INFO, nil where it is not there.
func told(info map[string]string, name string) *int64 {
	n, err := strconv.ParseInt(info[name], 10, 64)
	if err != nil {
		return nil
	}
	return &n
}
