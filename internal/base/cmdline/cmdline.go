// Package cmdline spells command lines of weir: for the units that run weir, and for people who
// copy them to a shell. What it spells, package cli reads.
package cmdline

import (
	"strings"

	"github.com/weir-io/weir/internal/limit"
)

// flags are the flags of the four rates.
var flags = [...]string{limit.RBPS: "--read", limit.WBPS: "--write", limit.RIOPS: "--read-iops", limit.WIOPS: "--write-iops"}

// Flag is the flag of a rate: "--write".
func Flag(k limit.Key) string { return flags[k] }

// Flags spells a requested limit as flags, for a shell: "--write 10MB/s --on /data".
func Flags(a limit.Asked) string { return Line(Words(a)) }

// Words are the flags of a requested limit one by one, as a program gets them.
func Words(a limit.Asked) []string {
	var words []string
	for _, k := range limit.Keys {
		if r := a.Limit.Get(k); r.IsSet() {
			words = append(words, Flag(k), strings.TrimSuffix(strings.ReplaceAll(r.Format(k), " ", ""), "ops/s"))
		}
	}
	if a.On != "" {
		words = append(words, "--on", a.On)
	}
	if a.Hold != "" {
		words = append(words, "--hold", a.Hold.String())
	}
	return words
}

// Line joins words to a line that a shell reads as those words.
func Line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Quote(w)
	}
	return strings.Join(quoted, " ")
}

// Quote spells a word for a shell to read.
func Quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-:=@,+%", r)
	}
	if word != "" && strings.TrimLeftFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
