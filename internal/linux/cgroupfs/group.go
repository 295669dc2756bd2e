package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Group is one cgroup of a hierarchy. It is a name: the group need not exist.
type Group struct {
	h    *Hierarchy
	path string // below the mount, "." for its root
}

// Group returns the group at path, as /proc/PID/cgroup spells it for the whole
// tree ("/system.slice/x"). A path with ".." elements, or outside the mounted part
// of the tree, is refused.
func (h *Hierarchy) Group(p string) (Group, error) {
	if isOutside(p) {
		return Group{}, outside(fmt.Sprintf("find cgroup %q", p), "it")
	}
	for _, element := range strings.Split(p, "/") {
		if element == ".." || strings.ContainsRune(element, 0) {
			return Group{}, fmt.Errorf("cgroup %q: the path must not leave the hierarchy", p)
		}
	}
	below := path.Clean("/" + p)
	if h.MountRoot != "/" {
		rest, ok := strings.CutPrefix(below, h.MountRoot)
		if !ok || rest != "" && rest[0] != '/' {
			return Group{}, fmt.Errorf("cgroup %q: only %s is mounted on %s", p, h.MountRoot, h.MountPoint)
		}
		below = path.Clean("/" + rest)
	}
	if below == "/" {
		return Group{h: h, path: "."}, nil
	}
	return Group{h: h, path: below[1:]}, nil
}

// Hierarchy returns the hierarchy that the group is of.
func (g Group) Hierarchy() *Hierarchy { return g.h }

// Root returns the hierarchy's root group, or what of it is mounted.
func (h *Hierarchy) Root() Group { return Group{h: h, path: "."} }

// Path returns the group's path as /proc/PID/cgroup spells it.
func (g Group) Path() string { return path.Join(g.h.MountRoot, g.path) }

// Dir returns the group's directory.
func (g Group) Dir() string { return g.h.file(g.path) }

// File returns the path of one of the group's files.
func (g Group) File(name string) string { return g.h.file(path.Join(g.path, name)) }

// IsRoot reports whether the group is the root of what is mounted. (In a cgroup
// namespace that need not be the root of the host's tree.)
func (g Group) IsRoot() bool { return g.path == "." }

// Parent returns the group above; the root is its own parent.
func (g Group) Parent() Group { return Group{h: g.h, path: path.Dir(g.path)} }

// Child returns a group directly below. The name must be one path element.
func (g Group) Child(name string) (Group, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00\n") || len(name) > unix.NAME_MAX {
		return Group{}, fmt.Errorf("cgroup name %q: it must be one path element of at most %d bytes, without line breaks", name, unix.NAME_MAX)
	}
	return Group{h: g.h, path: path.Join(g.path, name)}, nil
}

// Exists reports whether the group is there.
func (g Group) Exists() (bool, error) {
	fd, err := g.h.open(g.path, unix.O_PATH|unix.O_DIRECTORY)
	if IsGone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, unix.Close(fd)
}

// ID is the number by which the kernel tells groups apart: their directory's inode. It
// distinguishes the group from a later group of the same name.
func (g Group) ID() (uint64, error) {
	st, err := g.stat()
	return st.Ino, err
}

// Maker is the user that has made the group, or was given it.
func (g Group) Maker() (uid uint32, err error) {
	st, err := g.stat()
	return st.Uid, err
}

// ThereSince is a time at which the group was there already. It is when the group was made, or later: kernfs
// gives a directory the time at which the kernel has made its inode, which it drops where memory is short.
func (g Group) ThereSince() (time.Time, error) {
	st, err := g.stat()
	return time.Unix(st.Mtim.Unix()), err
}

func (g Group) stat() (st unix.Stat_t, err error) {
	fd, err := g.h.open(g.path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return st, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return st, &fs.PathError{Op: "stat", Path: g.Dir(), Err: err}
	}
	return st, nil
}

// Level is how many groups are above the group, in the whole tree.
func (g Group) Level() uint32 {
	return uint32(len(strings.FieldsFunc(g.Path(), func(r rune) bool { return r == '/' })))
}

// OpenDir opens the group's directory, as CLONE_INTO_CGROUP needs it. The caller
// closes the descriptor.
func (g Group) OpenDir() (int, error) {
	return g.h.open(g.path, unix.O_RDONLY|unix.O_DIRECTORY)
}

// Create makes the group. It fails with fs.ErrExist if the group exists.
func (g Group) Create() error {
	if err := g.h.Writable(); err != nil {
		return err
	}
	err := g.inParent("mkdir", func(dir int, name string) error { return unix.Mkdirat(dir, name, 0o755) })
	if err == nil && g.h.groups.Made != nil {
		err = g.h.groups.Made(g.Dir())
	}
	return err
}

// Remove removes the group. It fails with EBUSY while a process or a child group is in it.
func (g Group) Remove() error {
	if g.h.groups.Going != nil {
		if err := g.h.groups.Going(g.Dir()); err != nil {
			return err
		}
	}
	return g.inParent("rmdir", func(dir int, name string) error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

func (g Group) inParent(op string, do func(dir int, name string) error) error {
	dir, err := g.h.open(path.Dir(g.path), unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for {
		err := do(dir, path.Base(g.path))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: op, Path: g.Dir(), Err: err}
		}
		return nil
	}
}

func (g Group) read(name string) (string, error) { return g.h.read(path.Join(g.path, name)) }

func (g Group) write(name, line string) error { return g.h.write(path.Join(g.path, name), line) }

// Processes lists the processes of the group itself, not of the groups below. A
// process of another pid namespace, which the kernel lists as 0, is left out.
func (g Group) Processes() ([]int, error) { return g.members("cgroup.procs") }

// Threads lists the threads of a group of v1, like Processes.
func (g Group) Threads() ([]int, error) { return g.members("tasks") }

func (g Group) members(file string) ([]int, error) {
	text, err := g.read(file)
	if err != nil {
		return nil, err
	}
	var ids []int
	for line := range strings.Lines(text) {
		id, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return nil, fmt.Errorf("parse %s: %q is no pid", g.File(file), line)
		}
		if id != 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// AddProcess moves a process, with all its threads, into the group.
func (g Group) AddProcess(pid int) error { return g.write("cgroup.procs", strconv.Itoa(pid)) }

// AddThread moves one thread into the group (v1 only). A process that this thread then forks
// starts in the group.
func (g Group) AddThread(tid int) error { return g.write("tasks", strconv.Itoa(tid)) }

// SetMemoryMax bounds the memory of the group, page cache included, in bytes, and reads
// the bound back. The kernel rounds it down to pages (mm/page_counter.c,
// page_counter_memparse); a *WriteError says that it keeps another one.
func (g Group) SetMemoryMax(bytes uint64) error {
	w := g.MemoryWrite(bytes)
	if err := g.write(g.memoryFile(), w.Line); err != nil {
		return err
	}
	text, err := g.read(g.memoryFile())
	if err != nil {
		return fmt.Errorf("read back %s: %w", w.File, err)
	}
	kept := strings.TrimSpace(text)
	if kept != strconv.FormatUint(bytes-bytes%uint64(os.Getpagesize()), 10) {
		return &WriteError{Write: w, Kept: kept}
	}
	return nil
}

// MemoryWrite is the line that SetMemoryMax writes.
func (g Group) MemoryWrite(bytes uint64) Write {
	return Write{File: g.File(g.memoryFile()), Line: strconv.FormatUint(bytes, 10)}
}

func (g Group) memoryFile() string {
	if g.h.Version == V1 {
		return "memory.limit_in_bytes"
	}
	return "memory.max"
}

// ChildCount is how many groups there are directly below. kernfs counts them in the links of the
// group's directory, which has 2 without any. Known is false if the group cannot be looked at, or
// it is a copy on a file system that does not count so (btrfs).
func (g Group) ChildCount() (n int, known bool) {
	var st unix.Stat_t
	if unix.Fstatat(g.h.dir, g.path, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Nlink < 2 {
		return 0, false
	}
	return int(st.Nlink - 2), true
}

// Children lists the groups directly below.
func (g Group) Children() ([]Group, error) {
	if n, known := g.ChildCount(); known && n == 0 { // which costs a quarter of a listing
		return nil, nil
	}
	fd, err := g.OpenDir()
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var children []Group
	buf := make([]byte, 8192)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "list", Path: g.Dir(), Err: err}
		}
		if n == 0 {
			return children, nil
		}
		for _, name := range directories(buf[:n]) {
			children = append(children, Group{h: g.h, path: path.Join(g.path, name)})
		}
	}
}

// Walk calls visit for the group and all groups below it, parents first. It skips a group that
// vanishes meanwhile.
func (g Group) Walk(visit func(Group) error) error {
	if err := visit(g); err != nil {
		if IsGone(err) && !g.IsRoot() {
			return nil
		}
		return err
	}
	children, err := g.Children()
	if IsGone(err) && !g.IsRoot() {
		return nil
	}
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := child.Walk(visit); err != nil {
			return err
		}
	}
	return nil
}

// Explore is Walk, and one group below g that cannot be read does not hide the others: failed is told
// of it. Its owner can take the right to read it from everybody.
func (g Group) Explore(visit func(Group) error, failed func(Group, error)) error {
	err := visit(g)
	var children []Group
	if err == nil {
		children, err = g.Children()
	}
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := child.Explore(visit, failed); err != nil && !IsGone(err) {
			failed(child, err)
		}
	}
	return nil
}

// RemoveAll removes the group and the empty groups below it; it removes no group
// that still has a process.
func (g Group) RemoveAll() error {
	children, err := g.Children()
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := child.RemoveAll(); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return g.Remove()
}
