package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// escape makes s harmless on a terminal and one line: control bytes, invisible and direction-changing characters and
// bytes that are no UTF-8 are written out. What is printable stays as it is.
func escape(s string) string { return escapeBut(s, "") }

// escapeLines is escape that keeps line breaks.
func escapeLines(s string) string { return escapeBut(s, "\n") }

func escapeBut(s, keep string) string {
	if clean(s, keep) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r) || strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[n:]
	}
	return b.String()
}

func clean(s, keep string) bool {
	for i, r := range s {
		if ' ' <= r && r <= '~' { // nearly all there is; what follows costs more
			continue
		}
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return false
			}
		}
		if !unicode.IsPrint(r) && !strings.ContainsRune(keep, r) {
			return false
		}
	}
	return true
}

// escapeJSON does the same to a JSON text without changing its value: outside ASCII white space such characters can
// only stand inside strings, where \u means the same.
func escapeJSON(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		switch {
		case unicode.IsPrint(r), r == '\n', r == '\t', r == '\r':
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
