package chaos

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/xstreamq/xstreamq/loadtest/internal/ledger"
	"github.com/xstreamq/xstreamq/loadtest/internal/resp"
)

// own are the library's fields, which are not the producer's.
var own = []string{"oid", "rc", "lost", "losses", "cut", "redriven", "from", "err", "reason"}

// letters reads the dead letters as the page on the wire format says, without the library.
func letters(c *resp.Conn, stream, group string) ([]ledger.Letter, error) {
	var out []ledger.Letter
	for from := "-"; ; {
		v, err := c.Do(5*time.Second, "XRANGE", "{"+stream+"}."+group+".dlq", from, "+", "COUNT", "1000")
		if err != nil {
			return nil, fmt.Errorf("chaos: dead letters: %w", err)
		}
		list, _ := v.([]any)
		if len(list) == 0 {
			return out, nil
		}
		for _, e := range list {
			l, err := letter(e)
			if err != nil {
				return nil, err
			}
			out = append(out, l)
		}
		from = "(" + out[len(out)-1].EntryID
	}
}

func letter(entry any) (l ledger.Letter, err error) {
	pair, _ := entry.([]any)
	if len(pair) != 2 {
		return l, fmt.Errorf("chaos: dead letter %v", entry)
	}
	l.EntryID, _ = pair[0].(string)
	flat, _ := pair[1].([]any)
	for i := 0; i+1 < len(flat); i += 2 {
		name, _ := flat[i].(string)
		value, _ := flat[i+1].(string)
		switch name {
		case "oid":
			l.ID = value
		case "rc":
			l.RC, err = strconv.Atoi(value)
		case "lost":
			l.Lost, err = strconv.Atoi(value)
		case "losses":
			l.Losses, err = strconv.Atoi(value)
		case "reason":
			l.Reason = value
		}
		if err != nil {
			return l, fmt.Errorf("chaos: dead letter %s: %s: %w", l.EntryID, name, err)
		}
		if !slices.Contains(own, name) {
			l.Fields = append(l.Fields, name, value)
		}
	}
	return l, nil
}

// heldBy counts the messages under the consumers whose name begins with prefix~, in both streams; -1 when the server does not say.
func heldBy(addr, stream, group, prefix string) int64 {
	c, err := resp.Dial(addr, time.Second)
	if err != nil {
		return -1
	}
	defer c.Close()
	var sum int64
	for _, key := range []string{"{" + stream + "}", "{" + stream + "}." + group + ".retry"} {
		v, err := c.Do(time.Second, "XINFO", "CONSUMERS", key, group)
		if err != nil {
			return -1
		}
		list, _ := v.([]any)
		for _, x := range list {
			flat, _ := x.([]any)
			name, pending := "", int64(0)
			for i := 0; i+1 < len(flat); i += 2 {
				switch flat[i] {
				case "name":
					name, _ = flat[i+1].(string)
				case "pending":
					pending, _ = flat[i+1].(int64)
				}
			}
			if len(name) > len(prefix) && name[:len(prefix)+1] == prefix+"~" {
				sum += pending
			}
		}
	}
	return sum
}
