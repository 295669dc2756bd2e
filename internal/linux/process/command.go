package process

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
)

// commandMost is how much of a command line is shown, in characters.
const commandMost = 120

// Command is a process's command line for people: one short, printable line. If it has none, or
// has ended, it is "a process".
func Command(pid int) string {
	f, err := os.Open(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "a process"
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4*commandMost))
	if err != nil || len(text) == 0 {
		return "a process"
	}
	shown := []rune(strings.Map(func(r rune) rune {
		switch {
		case r == 0:
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return '?'
	}, strings.ToValidUTF8(string(text), "?")))
	if len(shown) > commandMost {
		return string(shown[:commandMost]) + "…"
	}
	return strings.TrimSpace(string(shown))
}
