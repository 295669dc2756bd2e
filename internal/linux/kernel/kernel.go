package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// An FS reads the /proc, /sys and /boot below a root.
type FS struct{ root string }

// New returns an FS below root: "/" for the host.
func New(root string) FS { return FS{root} }

func (f FS) at(path string) string { return filepath.Join(f.root, path) }

func (f FS) read(path string) (string, error) {
	b, err := os.ReadFile(f.at(path))
	return strings.TrimSpace(string(b)), err
}

// number reads a file of one number; there is false if the kernel has no such file.
func (f FS) number(path string) (n uint64, there bool, err error) {
	text, err := f.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	if n, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, false, fmt.Errorf("parse %s: %q is no number", path, text)
	}
	return n, true, nil
}

// ReleaseFile is where the kernel's release is read.
const ReleaseFile = "/proc/sys/kernel/osrelease"

// A Release is a kernel's version: its first two numbers, and all of it as the kernel
// spells it. What a distribution took over from later kernels is not in it.
type Release struct {
	Major, Minor int
	Text         string // "6.1.0-50-cloud-amd64"; empty: not known
}

// Release reads the kernel's version.
func (f FS) Release() (Release, error) {
	if f.root == "/" {
		return ParseRelease(Running()) // what the file has: uname(2) is one system call
	}
	text, err := f.read(ReleaseFile)
	if err != nil {
		return Release{}, fmt.Errorf("read the kernel's version: %w", err)
	}
	return ParseRelease(text)
}

// ParseRelease reads "6.1.0-50-cloud-amd64".
func ParseRelease(text string) (Release, error) {
	r := Release{Text: text}
	major, rest, ok := strings.Cut(text, ".")
	end := strings.IndexFunc(rest, func(c rune) bool { return c < '0' || c > '9' })
	if end < 0 {
		end = len(rest)
	}
	var errMajor, errMinor error
	r.Major, errMajor = strconv.Atoi(major)
	r.Minor, errMinor = strconv.Atoi(rest[:end])
	if !ok || errMajor != nil || errMinor != nil {
		return Release{Text: text}, fmt.Errorf("parse kernel version %q: not MAJOR.MINOR", text)
	}
	return r, nil
}

// Before reports whether the kernel is older than a version; false if its version is not known.
func (r Release) Before(major, minor int) bool {
	return r.Major != 0 && (r.Major < major || r.Major == major && r.Minor < minor)
}
