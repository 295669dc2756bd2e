package web

import (
	"strings"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/base/plain"
)

// nameMost bounds a name of others on the page, in characters.
const nameMost = 120

// cut makes text of others fit for the page: printable, in one line, and not endless. Templates and
// the script escape it besides.
func cut(s string) string {
	s = plain.Line(s[:min(len(s), 8*nameMost)])
	if utf8.RuneCountInString(s) <= nameMost {
		return s
	}
	r := []rune(s)
	return string(r[:nameMost*2/3]) + "…" + string(r[len(r)-nameMost/3+1:])
}

// message makes an error fit for the page.
func message(err error) string { return strings.ToValidUTF8(plain.Brief(err.Error()), "�") }
