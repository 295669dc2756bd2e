package cli

import (
	"strconv"
	"strings"
	"unicode"
)

// plain writes what could move a terminal's cursor, but for ends of lines and tabs, as Go
// escapes (\x1b): names of groups and files come from containers, too. A byte that is no
// text becomes U+FFFD.
func plain(text string) string {
	if strings.IndexFunc(text, moves) < 0 {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	var b strings.Builder
	for _, r := range text {
		if !moves(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToGraphic(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func moves(r rune) bool { return !unicode.IsGraphic(r) && r != '\n' && r != '\t' }
