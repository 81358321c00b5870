package dash

import (
	"strings"
	"testing"

	"github.com/xstreamq/xstreamq"
)

// Figures are what INFO and CONFIG say; what they do not say is null, not 0.
func TestFigures(t *testing.T) {
	t.Parallel()
	info := map[string]string{
		"redis_version": "7.2.4", "valkey_version": "8.1.1", "role": "master", "maxmemory_policy": "noeviction", "uptime_in_seconds": "90", "connected_clients": "12",
		"used_memory": "1048576", "used_memory_peak": "2097152", "maxmemory": "0", "connected_slaves": "2", "instantaneous_ops_per_sec": "7",
		"slave0": "ip=10.0.0.1,port=6379,state=online,offset=1,lag=0", "slave1": "ip=10.0.0.2,port=6379,state=wait_bgsave,offset=0,lag=0",
		"aof_enabled": "1", "aof_last_write_status": "err", "aof_last_bgrewrite_status": "ok", "rdb_last_bgsave_status": "err",
		"rdb_last_save_time": "1700000000", "rdb_changes_since_last_save": "3",
	}
	f := figures(xstreamq.Server{Addr: "10.0.0.9:6379", Info: info, Config: map[string]string{"appendfsync": "everysec", "save": ""}})
	got := string(mustEncode(f))
	want := `{"addr":"10.0.0.9:6379","version":"Valkey 8.1.1","role":"master","replicas":2,"replicas_online":1,"uptime_ms":90000,"clients":12,"commands_per_second":7,` +
		`"memory_bytes":1048576,"memory_peak_bytes":2097152,"memory_most_bytes":0,"eviction":"noeviction","aof":true,"fsync":"everysec","save":"","saved_at":"2023-11-14T22:13:20.000Z",` +
		`"changes_since_save":3,"errors":["the last write to the append-only file failed","the last snapshot failed"]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = string(mustEncode(figures(xstreamq.Server{})))
	if n := strings.Count(got, "null"); n != 13 || !strings.Contains(got, `"version":"","role":""`) || !strings.Contains(got, `"errors":[]`) {
		t.Errorf("a server that tells nothing: %d in %s", n, got)
	}
}
