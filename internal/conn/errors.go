// Package conn holds what is particular about connections: what a server's answer proves, and blocking reads on a
// connection of their own.
package conn

import (
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Codes of answers that prove that a command did not run and that time may mend.
var transient = []string{
	"READONLY", "LOADING", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "NOREPLICAS", "MISCONF", "BUSY",
}

// Code is the first word of a server's error, "" when err is none. Servers up to 6.2 and the embedded one hide the code of
// an error raised inside a script behind ERR; it is looked for in the text.
func Code(err error) string {
	var re redis.Error
	if !errors.As(err, &re) || errors.Is(err, redis.Nil) {
		return ""
	}
	code, rest, _ := strings.Cut(re.Error(), " ")
	if code == "ERR" && strings.Contains(rest, "script") {
		// What the user of a script may not, servers of every version say without a code.
		if strings.Contains(rest, "ACL failure in script") || strings.Contains(rest, "user executing the script can't") {
			return "NOPERM"
		}
		for _, known := range append([]string{"OOM", "NOGROUP", "WRONGTYPE", "NOPERM"}, transient...) {
			if strings.Contains(rest, known+" ") {
				return known
			}
		}
	}
	return code
}

// Said is an error text of the server that a script collected.
type Said string

func (e Said) Error() string { return string(e) }

// RedisError makes it one of the server's errors.
func (Said) RedisError() {}

// NotRun says that err proves that the command did not run, and that another try may fare better.
func NotRun(err error) bool {
	if err == nil {
		return false
	}
	if code := Code(err); code != "" {
		return slices.Contains(transient, code) || strings.Contains(err.Error(), "max number of clients")
	}
	if errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrPoolExhausted) {
		return true
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Refused says that the server answered and did not run the command.
func Refused(err error) bool { return Code(err) != "" }

// Auth says that the server refused the login or a command. To who has not logged in, a long command, such as a script, is
// a protocol error.
func Auth(err error) bool {
	switch Code(err) {
	case "NOAUTH", "WRONGPASS", "NOPERM":
		return true
	}
	return err != nil && (strings.Contains(err.Error(), "AUTH") && strings.Contains(err.Error(), "password") ||
		strings.Contains(err.Error(), "Protocol error: unauthenticated"))
}

// Demoted says that a blocked read ended because its server became a replica.
func Demoted(err error) bool {
	return Code(err) == "UNBLOCKED" && strings.Contains(err.Error(), "instance state changed")
}
