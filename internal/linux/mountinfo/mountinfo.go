// Package mountinfo reads /proc/PID/mountinfo (Documentation/filesystems/proc.rst, 3.5). Every
// user who may mount in a namespace of their own can write lines of that file: a mount point
// can be tens of kilobytes long, and some kernels print options without escapes. A line that
// cannot be read is left out and counted; it never hides the others.
package mountinfo

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// An Info is one line.
type Info struct {
	ID, Parent   int
	Major, Minor uint32 // st_dev of its files; major 0: anonymous, no device has it
	Root         string // the directory of the file system that is mounted
	Point        string // the mount point, seen from the process's root
	Options      string // of the mount
	Optional     string // "shared:1 master:2"
	FSType       string // "ext4", "fuse.sshfs"
	Source       string
	SuperOptions string // of the file system, as the kernel printed them
}

// Bounds of what is read. The longest line that the kernel is known to print has 500
// layers of an overlay with 4 KiB each (ovl_parse_layer's OVL_MAX_STACK, PATH_MAX).
const (
	lineMost = 16 << 20 // bytes of one line; longer ones are left out
	linesMax = 1 << 20  // the kernel's own bound is 100,000 mounts a namespace (fs.mount-max)
)

// A Left counts the lines that were left out. The zero Left is none.
type Left struct {
	Lines int
	First int    // the number of the first such line, from 1
	Why   string // of the first
}

func (l Left) String() string {
	if l.Lines == 1 {
		return fmt.Sprintf("line %d cannot be read and is left out: %s", l.First, l.Why)
	}
	return fmt.Sprintf("%d lines cannot be read and are left out; the first is line %d: %s", l.Lines, l.First, l.Why)
}

// Add counts one more line that is left out.
func (l *Left) Add(line int, why string) {
	if l.Lines++; l.Lines == 1 {
		l.First, l.Why = line, why
	}
}

// Read calls each for every line, until it says stop.
func Read(r io.Reader, each func(Info) (stop bool)) (Left, error) {
	var left Left
	lines := reader{in: bufio.NewReader(r)}
	for n := 1; ; n++ {
		text, err := lines.next()
		switch {
		case errors.Is(err, io.EOF):
			return left, nil
		case errors.Is(err, errLong):
			left.Add(n, err.Error())
			continue
		case err != nil:
			return left, err
		case n > linesMax:
			left.Add(n, fmt.Sprintf("there are more than %d mounts", linesMax))
			return left, nil
		}
		info, err := parse(text)
		if err != nil {
			left.Add(n, err.Error())
			continue
		}
		if each(info) {
			return left, nil
		}
	}
}

// A reader reads lines of any length, and keeps those of up to lineMost bytes.
type reader struct {
	in  *bufio.Reader
	all []byte // of a line that is longer than in's buffer
}

var errLong = errors.New("it is longer than 16 MiB")

// next returns a line without its end; io.EOF after the last one.
func (r *reader) next() (string, error) {
	part, err := r.in.ReadSlice('\n')
	if err == nil {
		return string(part[:len(part)-1]), nil
	}
	r.all = r.all[:0]
	long := false
	for ; errors.Is(err, bufio.ErrBufferFull); part, err = r.in.ReadSlice('\n') {
		if long = long || len(r.all)+len(part) > lineMost; !long {
			r.all = append(r.all, part...)
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	switch {
	case long || len(r.all)+len(part) > lineMost:
		return "", errLong
	case len(r.all)+len(part) == 0:
		return "", io.EOF
	}
	return strings.TrimSuffix(string(append(r.all, part...)), "\n"), nil
}

// parse reads a line from its left: all before the last field is escaped there, and the
// last field, the options of the file system, need not be (overlayfs before 6.7 prints a
// space in them as it is).
func parse(line string) (Info, error) {
	var i Info
	var head [6]string
	rest := line
	for n := range head {
		var more bool
		if head[n], rest, more = strings.Cut(rest, " "); !more {
			return i, errors.New("it has too few fields")
		}
	}
	major, minor, ok := strings.Cut(head[2], ":")
	if !ok {
		return i, errors.New("its device is no MAJOR:MINOR")
	}
	var errs [4]error
	i.ID, errs[0] = strconv.Atoi(head[0])
	i.Parent, errs[1] = strconv.Atoi(head[1])
	i.Major, errs[2] = number(major)
	i.Minor, errs[3] = number(minor)
	if err := errors.Join(errs[:]...); err != nil {
		return i, errors.New("one of its numbers is none")
	}
	i.Root, i.Point, i.Options = Unescape(head[3]), Unescape(head[4]), head[5]
	if i.Optional, rest, ok = cutDash(rest); !ok {
		return i, errors.New("it has no separator")
	}
	fstype, rest, ok := strings.Cut(rest, " ")
	source, options, ok2 := strings.Cut(rest, " ")
	if !ok || !ok2 || fstype == "" {
		return i, errors.New("it has too few fields")
	}
	i.FSType, i.Source, i.SuperOptions = Unescape(fstype), Unescape(source), options
	return i, nil
}

func number(s string) (uint32, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err
}

// cutDash cuts at the separator, before which there may be optional fields.
func cutDash(s string) (optional, rest string, ok bool) {
	if rest, ok = strings.CutPrefix(s, "- "); ok {
		return "", rest, true
	}
	return strings.Cut(s, " - ")
}

// Unescape turns \NNN, three octal digits, into the byte it stands for (seq_escape in the
// kernel's fs/seq_file.c).
func Unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && isOctal(s[i+1], '3') && isOctal(s[i+2], '7') && isOctal(s[i+3], '7') {
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func isOctal(c, most byte) bool { return '0' <= c && c <= most }
