// Package servers gives each test servers of its own, which end with it.
package servers

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/redis/go-redis/v9"
)

// Redis starts a redis-server on a socket of its own and returns its URL. XSTREAMQ_REDIS_SERVER names another command.
func Redis(t *testing.T) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	command := strings.Fields(cmp.Or(os.Getenv("XSTREAMQ_REDIS_SERVER"), "redis-server"))
	start(t, nil, append(command, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", filepath.Dir(socket))...)
	url := "unix://" + socket
	opt, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(opt)
	defer func() { _ = rdb.Close() }()
	await(t, "redis-server", func(ctx context.Context) error { return rdb.Ping(ctx).Err() })
	return url
}

// Postgres starts a PostgreSQL server on a socket of its own and returns how to reach it. PostgreSQL does not run as root:
// there it runs as the user postgres.
func Postgres(t *testing.T) string {
	t.Helper()
	bin := "" // on the PATH, or where Debian has it
	if _, err := exec.LookPath("initdb"); err != nil {
		found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is a good one
		if len(found) == 0 {
			t.Fatal("PostgreSQL is missing: initdb is neither on the PATH nor under /usr/lib/postgresql; scripts/test installs it")
		}
		bin = filepath.Dir(found[len(found)-1])
	}
	dir := t.TempDir()
	var as *syscall.SysProcAttr
	if os.Getuid() == 0 {
		u, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(u.Uid) // numbers, on Unix
		gid, _ := strconv.Atoi(u.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		for d := dir; d != filepath.Dir(os.TempDir()) && d != "/"; d = filepath.Dir(d) { //nolint:usetesting // its parents must let that user pass
			if d != os.TempDir() { //nolint:usetesting // not ours
				if err := os.Chmod(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--pgdata", data, "--username", "postgres", "--auth", "trust", "--no-sync", "--encoding", "UTF8", "--locale", "C")
	initdb.Dir, initdb.SysProcAttr = dir, as
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	start(t, as, filepath.Join(bin, "postgres"), "-D", data, "-k", dir, "-c", "listen_addresses=", "-c", "fsync=off")
	dsn := "host=" + dir + " user=postgres dbname=postgres"
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	await(t, "postgres", db.PingContext)
	return dsn
}

// start runs a server until the test ends. The shell between ends it also when the test process dies.
func start(t *testing.T, as *syscall.SysProcAttr, command ...string) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `"$@" </dev/null & cat >/dev/null; kill -INT $!; wait $!`, "sh"}, command...)...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr, cmd.Dir = &log, &log, as, "/"
	alive, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = alive.Close()
		_ = cmd.Wait() // ended by a signal, as it should
		if t.Failed() {
			t.Logf("%s said\n%s", command[0], log.String())
		}
	})
}

func await(t *testing.T, what string, ping func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for {
		err := ping(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s does not answer: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
