package systemd

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/base/peek"
)

// fileMost bounds what is read of a unit's file, in bytes: four of the longest line that systemd
// takes (LONG_LINE_MAX).
const fileMost = 4 << 20

// readFile reads a file of a unit. It is empty if systemd could read none there either: it is gone,
// or another kind of file. A link in systemd's directories can lead to a user's file, which that user
// can exchange for a FIFO.
func readFile(path string) (string, error) {
	text, err := peek.Regular(path, fileMost)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, peek.ErrNotRegular) || errors.Is(err, unix.ELOOP) || errors.Is(err, peek.ErrLong) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read unit file: %w", err)
	}
	return string(text), nil
}

// linesOf are the lines of a unit's file without comments. A backslash at the end of one joins the
// next to it (systemd.syntax(7)).
func linesOf(text string) (all []string) {
	begun := ""
	for line := range strings.Lines(text) {
		if first := strings.TrimLeft(line, " \t\r"); strings.HasPrefix(first, "#") || strings.HasPrefix(first, ";") {
			continue // also between two that are one
		}
		line = begun + strings.TrimRight(line, "\r\n")
		if before, more := strings.CutSuffix(line, `\`); more {
			begun = before + " "
			continue
		}
		all, begun = append(all, line), ""
	}
	return append(all, begun)
}

// firstWord is the first word of a setting, as systemd takes it for a path: without the quotation
// marks around a part of it, and without the backslash before a character (extract_first_word with
// EXTRACT_UNQUOTE).
func firstWord(value string) string {
	value = strings.TrimLeft(value, " \t\r\n")
	var word []byte
	quote := byte(0)
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '\\' && i+1 < len(value):
			i++
			word = append(word, value[i])
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && strings.IndexByte(" \t\r\n", c) >= 0:
			return string(word)
		default:
			word = append(word, c)
		}
	}
	return string(word)
}

// isPlain reports whether systemd reads a path back as it writes it into a unit's file: it writes
// neither quotation marks nor backslashes around it, and takes % for a specifier.
func isPlain(path string) bool { return !strings.ContainsAny(path, " \t\r\n\"'\\%") }
