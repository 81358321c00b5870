package keys

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest stream, group or dedupe id, and the longest prefix, in bytes.
const MaxName = 200

// CheckName refuses a stream or group name that could split a hash tag, meet another key or break a line of output:
// 1 to 200 bytes of valid UTF-8 without braces, white space or control characters.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("is empty; 1 to %d bytes are needed", MaxName)
	}
	return checkText(name)
}

// CheckPrefix is CheckName for a key prefix, which may be empty.
func CheckPrefix(prefix string) error { return checkText(prefix) }

// CheckDedupeID refuses ids that are empty or over 200 bytes; any bytes will do, they are hashed.
func CheckDedupeID(id string) error {
	if id == "" || len(id) > MaxName {
		return fmt.Errorf("has %d bytes; 1 to %d are allowed", len(id), MaxName)
	}
	return nil
}

func checkText(s string) error {
	if len(s) > MaxName {
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(s), MaxName)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("is not valid UTF-8")
	}
	for _, r := range s {
		if r == '{' || r == '}' || unicode.IsSpace(r) || unicode.IsControl(r) {
			return fmt.Errorf("contains %q; braces, white space and control characters are not allowed", r)
		}
	}
	return nil
}
