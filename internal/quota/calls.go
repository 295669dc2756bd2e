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
