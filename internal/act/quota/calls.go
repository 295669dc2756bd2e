package quota

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls that a walk makes for each file, without telling Go's scheduler. The scheduler
// takes the processor away from a goroutine in a system call for some microseconds, which costs
// more than the call. These calls wait only for the disk.

// statAt is statx(2) of a name in a directory; a link is itself.
func statAt(dir int, name string, st *unix.Statx_t) error {
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	const what = unix.STATX_INO | unix.STATX_NLINK | unix.STATX_BLOCKS
	_, _, errno := unix.RawSyscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(path)), unix.AT_SYMLINK_NOFOLLOW, what, uintptr(unsafe.Pointer(st)), 0)
	return failed(errno)
}

// openAt is openat(2).
func openAt(dir int, name string, flags int) (int, error) {
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return -1, err
	}
	fd, _, errno := unix.RawSyscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(path)), uintptr(flags), 0, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func closeFD(fd int) error {
	_, _, errno := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return failed(errno)
}

// A kernel reads and changes projects: those of files by their attributes, and those of a file
// system by its quotas. Tests have one that remembers.
type kernel interface {
	// xattr and setXattr are ioctls of an open file.
	xattr(fd int) (fsxattr, error)
	setXattr(fd int, x fsxattr) error
	// attr and setAttr are file_getattr(2) and file_setattr(2), of what a directory has by a name.
	attr(dir int, name string) (fileAttr, error)
	setAttr(dir int, name string, a fileAttr) error
	// quota is quotactl(2) for a project, and quotaState asks what is on.
	quota(f *fileSystem, command int, id uint32, d *diskQuota) error
	quotaState(f *fileSystem) (quotaState, error)
	// sync brings to the disk what was changed, as syncfs(2) does.
	sync(f *fileSystem) error
}

// running is the kernel that weir runs on. Values go by copy, so that a walk allocates nothing for
// a file.
type running struct{}

func (running) xattr(fd int) (x fsxattr, err error) {
	err = ioctl(fd, fsGetXattr, &x)
	return x, err
}

func (running) setXattr(fd int, x fsxattr) error { return ioctl(fd, fsSetXattr, &x) }

func (running) attr(dir int, name string) (a fileAttr, err error) {
	err = attrCall(unix.SYS_FILE_GETATTR, dir, name, &a)
	return a, err
}

func (running) setAttr(dir int, name string, a fileAttr) error {
	return attrCall(unix.SYS_FILE_SETATTR, dir, name, &a)
}

func (running) sync(f *fileSystem) error { return unix.Syncfs(int(f.root.Fd())) }

func ioctl(fd int, request uintptr, x *fsxattr) error {
	_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(x)))
	return failed(errno)
}

// attrCall is file_getattr(2) or file_setattr(2).
func attrCall(number uintptr, dir int, name string, a *fileAttr) error {
	path, err := unix.BytePtrFromString(name)
	if err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall6(number, uintptr(dir), uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(a)), unsafe.Sizeof(*a), unix.AT_SYMLINK_NOFOLLOW, 0)
	return failed(errno)
}

func failed(errno unix.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}
