package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/server"
)

const (
	slots   = 16384
	masters = 3
)

// cluster is three masters, each with a replica.
func cluster(dir string) (s *site, err error) {
	s = &site{again: func(*server.Server) []string { return nil }} // its nodes.conf says it
	defer func() {
		if err != nil {
			s.end()
		}
	}()
	for range 2 * masters {
		if _, err := s.node(dir, "--cluster-enabled", "yes", "--cluster-node-timeout", "1500", "--cluster-allow-replica-migration", "no"); err != nil {
			return s, err
		}
	}
	for i, n := range s.nodes {
		if i < masters {
			args := []string{"CLUSTER", "ADDSLOTS"}
			for slot := i * slots / masters; slot < (i+1)*slots/masters; slot++ {
				args = append(args, strconv.Itoa(slot))
			}
			if _, err := n.Do(args...); err != nil {
				return s, err
			}
		}
		if _, err := n.Do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(s.nodes[0].Port)); err != nil {
			return s, err
		}
	}
	ok := func(n *server.Server) bool {
		v, err := n.Do("CLUSTER", "INFO")
		text, _ := v.(string)
		return err == nil && strings.Contains(text, "cluster_state:ok") && strings.Contains(text, fmt.Sprintf("cluster_known_nodes:%d", 2*masters))
	}
	all := func() bool { return !slices.ContainsFunc(s.nodes, func(n *server.Server) bool { return !ok(n) }) }
	if err := until(30*time.Second, "a cluster whose nodes know each other", all); err != nil {
		return s, err
	}
	for i, n := range s.nodes[masters:] {
		id, err := s.nodes[i].Do("CLUSTER", "MYID")
		if err != nil {
			return s, err
		}
		if err := until(10*time.Second, "a master that its replica knows", func() bool {
			_, err := n.Do("CLUSTER", "REPLICATE", fmt.Sprint(id))
			return err == nil
		}); err != nil {
			return s, err
		}
		if err := s.followed(s.nodes[i]); err != nil {
			return s, err
		}
	}
	s.url = "redis+cluster://" + s.nodes[0].Addr()
	for i, n := range s.nodes[1:] {
		s.url += map[bool]string{true: "?", false: "&"}[i == 0] + "addr=" + n.Addr()
	}
	s.find = func() (*server.Server, error) {
		for _, n := range s.nodes {
			if _, err := n.Do("XLEN", "{"+stream+"}"); err == nil && isMaster(n) { // others answer MOVED
				return n, nil
			}
		}
		return nil, errNoMaster
	}
	return s, nil
}

// migrate moves the stream's slot to another master, key by key, while it is used.
func (s *site) migrate(draw uint64) error {
	from, err := s.find()
	if err != nil {
		return err
	}
	var others []*server.Server
	for _, n := range s.nodes {
		if n != from && isMaster(n) {
			others = append(others, n)
		}
	}
	to := others[draw%uint64(len(others))]
	v, err := from.Do("CLUSTER", "KEYSLOT", "{"+stream+"}")
	if err != nil {
		return err
	}
	slot := fmt.Sprint(v)
	ids := map[*server.Server]string{}
	for _, n := range []*server.Server{from, to} {
		id, err := n.Do("CLUSTER", "MYID")
		if err != nil {
			return err
		}
		ids[n] = fmt.Sprint(id)
	}
	if _, err := to.Do("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[from]); err != nil {
		return err
	}
	if _, err := from.Do("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to]); err != nil {
		return err
	}
	for {
		v, err := from.Do("CLUSTER", "GETKEYSINSLOT", slot, "1")
		if err != nil {
			return err
		}
		keys, _ := v.([]any)
		if len(keys) == 0 {
			break
		}
		if _, err := from.Do("MIGRATE", "127.0.0.1", strconv.Itoa(to.Port), "", "0", "5000", "KEYS", fmt.Sprint(keys[0])); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond) // for a while half of the keys are here and half there
	}
	for _, n := range []*server.Server{to, from} {
		if _, err := n.Do("CLUSTER", "SETSLOT", slot, "NODE", ids[to]); err != nil {
			return err
		}
	}
	return s.followed(to)
}
