package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// The kernel's bounds of inotify, for each user (inotify(7)).
const (
	watchesFile   = "/proc/sys/fs/inotify/max_user_watches"
	instancesFile = "/proc/sys/fs/inotify/max_user_instances"
)

// A LimitError says that the kernel allows this user no more watches or instances of inotify.
type LimitError struct {
	File string // where the bound is: it is for the user, not for the process
	What string // "watches" or "instances"
}

func (e *LimitError) Error() string {
	name := "fs.inotify." + e.File[strings.LastIndexByte(e.File, '/')+1:]
	bound := ""
	if text, err := os.ReadFile(e.File); err == nil {
		bound = ", which is " + strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("this user has as many inotify %s as the kernel allows (%s%s); raise it: sysctl -w %s=N", e.What, name, bound, name)
}

// NoInstance is the error of inotify_init1(2) that fails with EMFILE.
func NoInstance() *LimitError { return &LimitError{File: instancesFile, What: "instances"} }

// Class makes it fault.NotPossible.
func (e *LimitError) Class() fault.Class { return fault.NotPossible }

// events are what the kernel is asked to tell of. It also tells, unasked, of the end of a watch, of
// an unmount and of an overflow. cgroup v1 lets a group be renamed.
const events = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_ONLYDIR

func (t *Tree) mask() uint32 {
	if len(t.options.Files) > 0 {
		return events | unix.IN_MODIFY
	}
	return events
}

// open opens a group's directory without following links or entering what is mounted there.
func (t *Tree) open(path string) (int, error) {
	how := &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV}
	for {
		fd, err := unix.Openat2(t.root, path, how)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) { // EAGAIN: a rename at the same time
			return fd, err
		}
	}
}

// look watches a group, and then lists the groups below it. That is of one directory, whatever has
// its name by then. is says that the directory is the one that had the watch before.
func (t *Tree) look(n *node) (names []string, is bool, err error) {
	t.options.Each()
	fd, err := t.open(n.path())
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(fd)
	watch, err := unix.InotifyAddWatch(t.fd, fmt.Sprintf("/proc/self/fd/%d", fd), t.mask())
	switch {
	case errors.Is(err, unix.ENOSPC):
		t.limit = &LimitError{File: watchesFile, What: "watches"}
		is = n.watch == noWatch
	case err != nil:
		return nil, false, &fs.PathError{Op: "watch", Path: n.path(), Err: err}
	default:
		is = n.watch == int32(watch)
		t.give(n, int32(watch))
	}
	if t.hasNoneBelow(fd) {
		return nil, is, nil
	}
	names, err = directories(fd)
	return names, is, err
}

// directories lists those below an open directory.
func directories(fd int) (names []string, err error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(own), "directory")
	defer dir.Close()
	entries, err := dir.ReadDir(-1) // the type comes with the name
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// hasNoneBelow reports whether a group has no groups below it: kernfs counts them in the links of the directory, which has 2
// without any. To list the directory, with all its files, takes ten times as long, and most groups have none.
func (t *Tree) hasNoneBelow(dir int) bool {
	var st unix.Stat_t
	return t.counts && unix.Fstat(dir, &st) == nil && st.Nlink == 2
}

// isCgroup reports whether a directory is on a cgroup file system, of either version.
func isCgroup(dir int) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(dir, &st) == nil && (st.Type == unix.CGROUP_SUPER_MAGIC || st.Type == unix.CGROUP2_SUPER_MAGIC)
}

// give notes whose watch one is. Another group that has it was renamed: it is this one now.
func (t *Tree) give(n *node, watch int32) {
	if was := t.watched[watch]; was != nil && was != n {
		was.watch = noWatch
		t.drop(was)
	}
	if n.watch != watch {
		t.unwatch(n)
	}
	n.watch = watch
	t.watched[watch] = n
}

// unwatch ends a group's watch. Before Linux 7.0 the kernel does not end it with the group.
func (t *Tree) unwatch(n *node) {
	if n.watch == noWatch {
		return
	}
	_, _ = unix.InotifyRmWatch(t.fd, uint32(n.watch)) // it may have ended
	delete(t.watched, n.watch)
	n.watch = noWatch
}
