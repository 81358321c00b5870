package conn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

// said is an error that a server answered.
type said string

func (s said) Error() string { return string(s) }
func (said) RedisError()     {}

func TestWhatErrorsProve(t *testing.T) {
	t.Parallel()
	_, refused := net.Dial("tcp", "127.0.0.1:1")
	_, late := (&net.Dialer{Timeout: 1}).Dial("tcp", "127.0.0.1:1")
	if refused == nil || late == nil {
		t.Fatal("something listens on port 1")
	}
	for _, x := range []struct {
		err                   error
		code                  string
		notRun, refused, auth bool
	}{
		{err: nil},
		{err: redis.Nil},
		{err: io.EOF},
		{err: context.DeadlineExceeded},
		{err: errors.New("READONLY as somebody else says it")},
		{err: refused, notRun: true},
		{err: fmt.Errorf("wrapped: %w", late), notRun: true},
		{err: &net.OpError{Op: "read", Err: io.EOF}},
		{err: redis.ErrPoolTimeout, notRun: true},
		{err: said("ERR syntax error"), code: "ERR", refused: true},
		{err: said("READONLY You can't write against a read only replica."), code: "READONLY", notRun: true, refused: true},
		{err: fmt.Errorf("script tick: %w", said("LOADING Redis is loading")), code: "LOADING", notRun: true, refused: true},
		{err: said("MOVED 1 127.0.0.1:7000"), code: "MOVED", notRun: true, refused: true},
		{err: said("ASK 1 127.0.0.1:7000"), code: "ASK", notRun: true, refused: true},
		{err: said("TRYAGAIN Multiple keys"), code: "TRYAGAIN", notRun: true, refused: true},
		{err: said("CLUSTERDOWN The cluster is down"), code: "CLUSTERDOWN", notRun: true, refused: true},
		{err: said("MASTERDOWN Link"), code: "MASTERDOWN", notRun: true, refused: true},
		{err: said("NOREPLICAS Not enough"), code: "NOREPLICAS", notRun: true, refused: true},
		{err: said("MISCONF Redis is configured"), code: "MISCONF", notRun: true, refused: true},
		{err: said("BUSY Redis is busy running a script."), code: "BUSY", notRun: true, refused: true},
		{err: said("ERR max number of clients reached"), code: "ERR", notRun: true, refused: true},
		{err: said("ERR Error running script (call to f_x): @user_script:9: READONLY You can't write"), code: "READONLY", notRun: true, refused: true},
		{err: said("ERR Error running script: OOM command not allowed"), code: "OOM", refused: true},
		{err: said("OOM command not allowed when used memory > 'maxmemory'."), code: "OOM", refused: true},
		{err: said("WRONGTYPE Operation against a key"), code: "WRONGTYPE", refused: true},
		{err: said("NOAUTH Authentication required."), code: "NOAUTH", refused: true, auth: true},
		{err: said("ERR Protocol error: unauthenticated multibulk length"), code: "ERR", refused: true, auth: true},
		{err: said("WRONGPASS invalid username-password pair"), code: "WRONGPASS", refused: true, auth: true},
		{err: said("NOPERM this user has no permissions"), code: "NOPERM", refused: true, auth: true},
		{err: said("ERR ACL failure in script: User bob has no permissions to run the 'xack' command"), code: "NOPERM", refused: true, auth: true},
		{err: said("ERR The user executing the script can't run this command or subcommand (XADD k)"), code: "NOPERM", refused: true, auth: true},
		{err: said("ERR Client sent AUTH, but no password is set"), code: "ERR", refused: true, auth: true},
		{err: said("NOGROUP No such key"), code: "NOGROUP", refused: true},
		{err: said("UNBLOCKED the stream key no longer exists"), code: "UNBLOCKED", refused: true},
		{err: said("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)"), code: "UNBLOCKED", refused: true},
	} {
		if got := Code(x.err); got != x.code {
			t.Errorf("%v: code %q, want %q", x.err, got, x.code)
		}
		for what, got := range map[string][2]bool{
			"NotRun": {NotRun(x.err), x.notRun}, "Refused": {Refused(x.err), x.refused}, "Auth": {Auth(x.err), x.auth},
		} {
			if got[0] != got[1] {
				t.Errorf("%s of %v is %v", what, x.err, got[0])
			}
		}
	}
	if !Demoted(said("UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)")) || Demoted(said("UNBLOCKED client unblocked via CLIENT UNBLOCK")) {
		t.Error("Demoted")
	}
}
