package blkdev

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable writes what could move a terminal's cursor as Go escapes (\n, \x1b):
// mount points and file names come from containers, and a chain is one line.
func Printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !unicode.IsGraphic(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			quoted := strconv.QuoteToGraphic(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:size])
		}
		s = s[size:]
	}
	return b.String()
}
