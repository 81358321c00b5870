package chaos

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/proc"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

const masterName = "chaos"

var errNoMaster = errors.New("chaos: no node is master")

// sentinels is a master and its replica, watched by three sentinels.
func sentinels(dir string) (s *site, err error) {
	s = &site{}
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	master, err := s.node(dir)
	if err != nil {
		return s, err
	}
	s.again = func(m *server.Server) []string { return []string{"--replicaof", "127.0.0.1 " + strconv.Itoa(m.Port)} }
	if _, err := s.node(dir, s.again(master)...); err != nil {
		return s, err
	}
	if err := s.followed(master); err != nil {
		return s, err
	}
	var watchers []string
	for i := range 3 {
		addr, err := s.sentinel(filepath.Join(dir, fmt.Sprintf("sentinel-%d", i)), master.Port)
		if err != nil {
			return s, err
		}
		watchers = append(watchers, addr)
	}
	s.url = "redis+sentinel://" + watchers[0] + "?master_name=" + masterName + "&addr=" + watchers[1] + "&addr=" + watchers[2]
	s.find = func() (*server.Server, error) {
		for _, w := range watchers {
			v, err := resp.Once(w, time.Second, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
			list, _ := v.([]any)
			if err != nil || len(list) != 2 {
				continue
			}
			for _, n := range s.nodes {
				if strconv.Itoa(n.Port) == list[1] && isMaster(n) {
					return n, nil
				}
			}
		}
		return nil, errNoMaster
	}
	return s, until(20*time.Second, "sentinels that know each other and the replica", func() bool {
		for _, w := range watchers {
			v, err := resp.Once(w, time.Second, "SENTINEL", "CKQUORUM", masterName)
			text, _ := v.(string)
			if err != nil || !strings.HasPrefix(text, "OK 3 usable") {
				return false
			}
			v, err = resp.Once(w, time.Second, "SENTINEL", "REPLICAS", masterName)
			if list, _ := v.([]any); err != nil || len(list) != 1 {
				return false
			}
		}
		return true
	})
}

// sentinel starts one and returns its address.
func (s *site) sentinel(dir string, master int) (string, error) {
	port, err := server.FreePort()
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	config := fmt.Sprintf(`port %d
bind 127.0.0.1
dir %s
sentinel monitor %[3]s 127.0.0.1 %d 2
sentinel down-after-milliseconds %[3]s 1000
sentinel failover-timeout %[3]s 3000
`, port, dir, masterName, master)
	path := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return "", err
	}
	command := server.Command()
	cmd := exec.Command(command[0], append(command[1:], path, "--sentinel")...)
	log, err := os.Create(filepath.Join(dir, "sentinel.log"))
	if err != nil {
		return "", err
	}
	defer func() { _ = log.Close() }() // the process has its own by then
	cmd.Stdout, cmd.Stderr = log, log
	p, err := proc.Start(cmd)
	if err != nil {
		return "", err
	}
	s.close = append(s.close, func() { _ = p.Kill() }) // it has nothing to keep
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	return addr, until(10*time.Second, "an answer of the sentinel at "+addr, func() bool {
		_, err := resp.Once(addr, time.Second, "PING")
		return err == nil
	})
}
