package load

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A caller does operations by pread(2) and pwrite(2).
type caller struct {
	call uintptr
	read bool
	fd   uintptr
	buf  []byte
}

func newCaller(j Job, f *os.File) (*caller, error) {
	buf, err := allocate(j.Block)
	if err != nil {
		return nil, err
	}
	c := &caller{call: unix.SYS_PREAD64, read: j.Read, fd: f.Fd(), buf: buf}
	if !j.Read {
		c.call = unix.SYS_PWRITE64
		fill(buf)
	}
	return c, nil
}

func (c *caller) close() error { return unix.Munmap(c.buf) }

// do goes around Go's scheduler (RawSyscall): a thread that announces each system call
// wakes the runtime's monitor, which costs more than the operation where processors are
// few or emulated. Nothing else wants this thread: a load is all that its process does.
func (c *caller) do(n uint64, at int64) error {
	if !c.read {
		stamp(c.buf, n)
	}
	for {
		n, _, errno := unix.RawSyscall6(c.call, c.fd, uintptr(unsafe.Pointer(&c.buf[0])), uintptr(len(c.buf)), uintptr(at), 0, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return explain(errno)
		case int(n) == len(c.buf):
			return nil
		case c.read:
			return io.ErrUnexpectedEOF
		default:
			return io.ErrShortWrite
		}
	}
}

// explain says what the kernel may have meant by its refusal of an operation.
func explain(errno unix.Errno) error {
	if errors.Is(errno, unix.EINVAL) {
		return fmt.Errorf("%w (direct I/O needs blocks of a multiple of the disk's logical block)", errno)
	}
	return errno
}
