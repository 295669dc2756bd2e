package process

import (
	"bytes"
	"os"
	"strings"
)

// lineMax is where a console line that does not end is given up.
const lineMax = 1 << 16

// lines writes a console to a file as it comes, and hands on whole lines.
type lines struct {
	file *os.File
	log  func(string)
	part []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole {
			break
		}
		if l.log != nil {
			l.log(strings.TrimRight(string(line), "\r"))
		}
		l.part = rest
	}
	if len(l.part) > lineMax {
		l.part = nil
	}
	return l.file.Write(p)
}
