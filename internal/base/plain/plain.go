// Package plain makes text of others safe for where weir puts it. Names of files, groups,
// containers and commands can contain line breaks, terminal codes and invalid UTF-8. All such
// text that weir writes to a terminal, a log, a record or a systemd unit goes through this
// package.
package plain

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line makes one line of a text: unprintable characters become Go escapes (\n, \x1b).
func Line(s string) string {
	if isPlain(s) {
		return s
	}
	text, _, _ := escape(s, isOdd, len(s)*longest)
	return text
}

// briefMost bounds a part of a message, in bytes: a path of 70 kB is a path all the same.
const briefMost = 1000

// Brief is Line with a bound: from a longer text the middle is left out.
func Brief(s string) string {
	line := Line(s[:min(len(s), 2*briefMost)])
	if len(s) <= 2*briefMost && len(line) <= briefMost {
		return line
	}
	end := Line(s[max(len(s)-briefMost/4, 0):])
	return strings.ToValidUTF8(line[:min(len(line), briefMost/2)], "") + " ... " + strings.ToValidUTF8(end[max(len(end)-briefMost/4, 0):], "")
}

// Text is Line for a text of several lines: ends of lines and tabs stay.
func Text(s string) string {
	text, _, _ := escape(s, func(r rune) bool { return isOdd(r) && r != '\n' && r != '\t' }, len(s)*longest)
	return text
}

// linesMost and lineMost bound a message: in lines, and a line of it in bytes.
const (
	linesMost = 20
	lineMost  = 4 * briefMost
)

// Message is a text of several lines with a bound; tabs are escaped too. From a line of more than 4000 bytes the middle is left out, and
// the last of more than 20 lines says how many more there are.
func Message(s string) string {
	text := strings.TrimSuffix(s, "\n")
	lines := strings.SplitN(text, "\n", linesMost+1)
	if len(lines) > linesMost {
		lines = lines[:linesMost]
		lines[linesMost-1] = fmt.Sprintf("... and %d more lines", strings.Count(text, "\n")-linesMost+2)
	}
	for i, line := range lines {
		if line = Line(line); len(line) > lineMost {
			line = strings.ToValidUTF8(line[:lineMost/2], "") + " ... " + strings.ToValidUTF8(line[len(line)-lineMost/4:], "")
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n") + s[len(text):]
}

// Quoted returns a text as it is, or as a quoted Go string if not all of it is printable.
func Quoted(s string) string {
	if !has(s, isOdd) {
		return s
	}
	return `"` + quoted(s) + `"`
}

// Short is Quoted with a bound: the result has at most so many bytes, and ends in "..." if
// the text was cut.
func Short(s string, most int) string { return short(s, isOdd, most) }

// describedMost bounds a unit's description, in bytes.
const describedMost = 200

// Described makes a description for a systemd unit. systemd writes it into a file as one line
// of a setting. A line break would begin another setting, and a backslash at the end would
// swallow the next line, so both are quoted (systemd.syntax(7)).
func Described(s string) string {
	return short(s, func(r rune) bool { return isOdd(r) || r == '\\' }, describedMost)
}

func short(s string, odd func(rune) bool, most int) string {
	if len(s) <= most && !has(s, odd) {
		return s
	}
	const dots, quotes = "...", `""`
	text, changed, cut := escape(s, odd, most-len(dots)-len(quotes))
	if cut {
		text += dots
	}
	if changed {
		return `"` + text + `"`
	}
	return text
}

// longest is the length of the longest escape of a byte, or of the bytes of a character, for
// each of these bytes.
const longest = 4

// escape writes unprintable characters as Go escapes, and stops before the result exceeds most
// bytes.
func escape(s string, odd func(rune) bool, most int) (text string, changed, cut bool) {
	if len(s) <= most && !has(s, odd) {
		return s, false, false
	}
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		part := s[:size]
		if r == utf8.RuneError && size == 1 || odd(r) {
			part, changed = quoted(part), true
		}
		if b.Len()+len(part) > most {
			return b.String(), changed, true
		}
		b.WriteString(part)
		s = s[size:]
	}
	return b.String(), changed, false
}

// quoted is a Go string without the quotes around it.
func quoted(s string) string {
	q := strconv.QuoteToGraphic(s)
	return q[1 : len(q)-1]
}

// has reports whether something in a text is odd, or is no UTF-8.
func has(s string, odd func(rune) bool) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, odd)
}

// isPlain reports whether a text is printable ASCII, as thousands of names a second are: to look at bytes
// is far cheaper than to look up characters.
func isPlain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// isOdd reports whether a character could move a terminal's cursor or end a line.
func isOdd(r rune) bool { return !unicode.IsGraphic(r) }
