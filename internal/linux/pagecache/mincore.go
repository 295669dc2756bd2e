package pagecache

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore fills in with a byte for each page of a mapping, whose lowest bit says that
// the page is resident.
func mincore(m, in []byte) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&in[0])))
		switch errno {
		case 0:
			return nil
		case unix.EAGAIN, unix.EINTR: // the kernel was out of memory for a moment
		default:
			return errno
		}
	}
}
