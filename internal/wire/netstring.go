package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Version is the first byte of every parked value.
const Version = '\x01'

// ErrMalformed says that a parked value cannot be read.
var ErrMalformed = errors.New("malformed parked value")

// Pack writes fields as a parked value: a version byte, then each string as length, colon, bytes, comma.
func Pack(fields []string) string {
	n := 1
	for _, f := range fields {
		n += len(f) + 12
	}
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(Version)
	var num [20]byte
	for _, f := range fields {
		b.Write(strconv.AppendInt(num[:0], int64(len(f)), 10))
		b.WriteByte(':')
		b.WriteString(f)
		b.WriteByte(',')
	}
	return b.String()
}

// Unpack reads a parked value. Errors: ErrMalformed, naming the place.
func Unpack(s string) ([]string, error) {
	if s == "" || s[0] != Version {
		return nil, fmt.Errorf("%w: no version byte %d at its head", ErrMalformed, Version)
	}
	var out []string
	for at := 1; at < len(s); {
		colon := strings.IndexByte(s[at:], ':')
		if colon < 1 || colon > 10 {
			return nil, fmt.Errorf("%w: no length at byte %d", ErrMalformed, at)
		}
		n, err := strconv.ParseUint(s[at:at+colon], 10, 32)
		from := at + colon + 1
		if err != nil || uint64(len(s)-from) <= n || s[from+int(n)] != ',' { //nolint:gosec // n is below 2^32 and within s
			return nil, fmt.Errorf("%w: bad length at byte %d", ErrMalformed, at)
		}
		out = append(out, s[from:from+int(n)]) //nolint:gosec // likewise
		at = from + int(n) + 1                 //nolint:gosec // likewise
	}
	if len(out) == 0 || len(out)%2 != 0 {
		return nil, fmt.Errorf("%w: %d strings are no pairs of name and value", ErrMalformed, len(out))
	}
	return out, nil
}
