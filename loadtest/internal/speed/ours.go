package speed

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
)

// Build makes the command line that measures ours, in a process of its own. root is the repository's.
func Build(ctx context.Context, root, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/xstreamq")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building xstreamq: %w\n%s", err, out)
	}
	return nil
}

// ours runs `xstreamq bench`.
func ours(ctx context.Context, binary, addr string, args ...string) (map[string]float64, error) {
	args = append([]string{"--url", "redis://" + addr, "bench", "--json", "--size", strconv.Itoa(Body)}, args...)
	out, err := output(exec.CommandContext(ctx, binary, args...))
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name  string
		Value float64
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, err
	}
	m := map[string]float64{}
	for _, r := range list {
		m[r.Name] = r.Value
	}
	return m, nil
}

func output(cmd *exec.Cmd) ([]byte, error) {
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return out, nil
}

// redisBenchmark is what the server's own tool reaches with XADD, on as many connections as we have callers.
func redisBenchmark(ctx context.Context, addr string, n, pipeline int) (float64, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	out, err := output(exec.CommandContext(ctx, "redis-benchmark", "-h", host, "-p", port, "-c", strconv.Itoa(workers),
		"-n", strconv.Itoa(n), "-P", strconv.Itoa(pipeline), "--csv", "XADD", "floor", "*", "body", string(text())))
	if err != nil {
		return 0, err
	}
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(rows) < 2 || len(rows[1]) < 2 {
		return 0, fmt.Errorf("redis-benchmark printed %q (%w)", out, err)
	}
	return strconv.ParseFloat(rows[1][1], 64)
}
