package prove

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// A Root is the root directory of a process, held open: paths below it belong to that process,
// even if another process gets its number later.
type Root struct{ dir *os.File }

// OpenRoot opens the root of a process; pid 0 is for weir's own.
func OpenRoot(pid int) (Root, error) {
	name := "/"
	if pid != 0 {
		name = fmt.Sprintf("/proc/%d/root", pid)
	}
	fd, err := unix.Open(name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return Root{}, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return Root{os.NewFile(uintptr(fd), name)}, nil
}

// Close closes the root; what was opened below it stays open.
func (r Root) Close() error { return r.dir.Close() }

// Open opens a directory as the process would: absolute symbolic links begin at the
// root, and nothing leads out of it.
func (r Root) Open(dir string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(int(r.dir.Fd()), dir, &how)
		switch err {
		case nil:
			return os.NewFile(uintptr(fd), dir), nil
		case unix.EINTR, unix.EAGAIN:
			continue
		case unix.ENOSYS:
			return nil, &fault.Unsupported{Feature: "open " + dir, Reason: "the kernel has no openat2", Remedy: "boot Linux 5.6 or later"}
		default:
			return nil, &os.PathError{Op: "open", Path: dir, Err: err}
		}
	}
}

// Where returns the ID of the mount that an open directory is on, 0 before Linux 5.8,
// and its path below the root.
func (r Root) Where(dir *os.File) (mount int, path string, err error) {
	var st unix.Statx_t
	if err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st); err == nil && st.Mask&unix.STATX_MNT_ID != 0 {
		mount = int(st.Mnt_id)
	}
	root, err := os.Readlink(procPath(r.dir))
	if err != nil {
		return 0, "", err
	}
	if path, err = os.Readlink(procPath(dir)); err != nil {
		return 0, "", err
	}
	if root != "/" {
		path = "/" + strings.TrimPrefix(strings.TrimPrefix(path, root), "/")
	}
	return mount, path, nil
}

// Writable reports whether files can be made in an open directory, as far as its mount
// goes.
func Writable(dir *os.File) bool {
	var st unix.Statfs_t
	return unix.Fstatfs(int(dir.Fd()), &st) == nil && st.Flags&unix.ST_RDONLY == 0
}

// folder is a name by which weir itself finds the directory.
func (p Place) folder() string {
	if p.Folder != nil {
		return procPath(p.Folder)
	}
	return p.Dir
}

func procPath(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }
