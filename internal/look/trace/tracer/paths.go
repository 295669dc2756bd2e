package tracer

import (
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// nameMost is how much of a name the kernel side stores: char name[64] of bpf/trace.h.
const nameMost = 63

const (
	// fdsMost bounds how many open files of a process are checked.
	fdsMost = 1024
	// pathsMost bounds how many paths are remembered.
	pathsMost = 8192
)

// An opened is a file that a process had open when it did I/O.
type opened struct {
	tgid   uint32
	device uint32 // as the kernel numbers it: 20 bits of minor
	inode  uint64
	name   string // the last element of its path
}

// paths finds the paths of files among the files that their processes have open now. If a
// process has closed the file, or has ended, only the file's name is known.
type paths struct {
	proc  string // /proc
	known map[opened]string
}

func newPaths() *paths { return &paths{proc: "/proc", known: map[opened]string{}} }

// find returns a file's path as its process sees it, or else its name. fd is the process's
// descriptor; -1: not known.
func (p *paths) find(f opened, fd int) string {
	if f.inode == 0 || f.name == "" {
		return f.name
	}
	if found, ok := p.known[f]; ok {
		return found
	}
	found := p.look(f, fd)
	if found == "" {
		found = f.name
	}
	if len(p.known) >= pathsMost {
		clear(p.known)
	}
	p.known[f] = found
	return found
}

// look returns a file's path; empty: not found.
func (p *paths) look(f opened, fd int) string {
	dir := filepath.Join(p.proc, strconv.Itoa(int(f.tgid)), "fd")
	if fd >= 0 {
		if found, exact := f.at(filepath.Join(dir, strconv.Itoa(fd))); exact {
			return found
		}
	}
	links, err := os.Open(dir)
	if err != nil {
		return "" // the process has ended
	}
	defer links.Close()
	names, err := links.Readdirnames(fdsMost)
	if err != nil {
		return ""
	}
	near := ""
	for _, name := range names {
		found, exact := f.at(filepath.Join(dir, name))
		if exact {
			return found
		}
		if found != "" && f.device>>20 == 0 { // elsewhere it is another file of that name
			near = found
		}
	}
	return near
}

// at returns where a link of /proc/PID/fd leads to, if it has the file's name. exact is true if
// the device and inode numbers match too: on btrfs and overlayfs programs see other numbers
// than the kernel's own.
func (f opened) at(link string) (found string, exact bool) {
	to, err := os.Readlink(link)
	if err != nil || !strings.HasPrefix(to, "/") {
		return "", false
	}
	base := path.Base(to)
	if !f.isCalled(base) && !f.isCalled(strings.TrimSuffix(base, " (deleted)")) { // a file can be called so, too
		return "", false
	}
	var st unix.Statx_t
	// Without asking a server: it may be slow, or gone.
	if unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st) != nil {
		return to, false
	}
	return to, st.Ino == f.inode && st.Dev_major == f.device>>20 && st.Dev_minor == f.device&0xfffff
}

// isCalled reports whether a file of this name can be f, whose name may be cut.
func (f opened) isCalled(name string) bool {
	return name == f.name || len(f.name) >= nameMost && strings.HasPrefix(name, f.name)
}
