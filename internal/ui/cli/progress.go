package cli

import (
	"fmt"
	"os"
	"strings"
)

// Progress is one line on a terminal that is written over and over. Where stderr is
// no terminal it writes nothing.
type Progress struct {
	file *os.File // nil: no terminal
}

// NewProgress returns a progress line on f.
func NewProgress(f *os.File) *Progress {
	if !IsTerminal(f) {
		f = nil
	}
	return &Progress{file: f}
}

// Show writes what is running and how far it is, from 0 to 1.
func (p *Progress) Show(what string, part float64) {
	if p.file == nil {
		return
	}
	const width = 24
	full := int(part*width + 0.5)
	_, _ = fmt.Fprintf(p.file, "\r\x1b[K  %s%s %s", strings.Repeat("█", full), strings.Repeat("░", width-full), what)
}

// Clear takes the line away.
func (p *Progress) Clear() {
	if p.file != nil {
		_, _ = fmt.Fprint(p.file, "\r\x1b[K")
	}
}
