//go:build unix

package redistest

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"time"
)

// FlushEnv names the environment variable with an interval, such as 100ms, at which every server forgets its scripts while
// tests run on it: nothing may depend on a script staying known.
const FlushEnv = "XSTREAMQ_SCRIPT_FLUSH"

// flushInterval is zero when servers keep their scripts.
func flushInterval() (time.Duration, error) {
	text := os.Getenv(FlushEnv)
	if text == "" {
		return 0, nil
	}
	every, err := time.ParseDuration(text)
	if err != nil || every <= 0 {
		return 0, fmt.Errorf("redistest: %s=%q: a positive duration such as 100ms is needed", FlushEnv, text)
	}
	return every, nil
}

// flushScripts runs for one life of a server's process. A server that does not answer, or refuses, is asked again.
func flushScripts(addr string, every time.Duration, done <-chan struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var conn net.Conn
	var in *bufio.Reader
	for {
		select {
		case <-done:
			if conn != nil {
				_ = conn.Close() // the other end is gone
			}
			return
		case <-tick.C:
		}
		if conn == nil {
			var err error
			if conn, err = net.DialTimeout("tcp", addr, time.Second); err != nil {
				conn = nil
				continue
			}
			in = bufio.NewReader(conn)
		}
		_ = conn.SetDeadline(time.Now().Add(time.Second)) // a closed connection fails the write too
		_, err := conn.Write([]byte("SCRIPT FLUSH\r\n"))
		if err == nil {
			_, err = in.ReadString('\n')
		}
		if err != nil {
			_ = conn.Close() // given up
			conn = nil
		}
	}
}
