package load

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A reporter writes ticks and a result to a descriptor, a line each. A nil one writes
// nothing.
type reporter struct {
	fd   uintptr
	line []byte // reused: the loop allocates nothing
	poll [1]unix.PollFd
}

func newReporter(out *os.File) *reporter {
	fd := out.Fd()
	return &reporter{fd: fd, line: make([]byte, 0, 128), poll: [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}}
}

// tick writes one line with one write(2), or nothing if the reader is slow: the load must not
// wait for it.
func (r *reporter) tick(t Tick) error {
	if r == nil {
		return nil
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&r.poll)), 1, uintptr(unsafe.Pointer(&unix.Timespec{})), 0, 0, 0)
	if errno != 0 || n == 0 {
		return nil // the next tick says it as well
	}
	r.line = append(r.line[:0], `{"tick":{"at_ns":`...)
	r.line = strconv.AppendInt(r.line, t.At, 10)
	r.line = append(r.line, `,"bytes":`...)
	r.line = strconv.AppendInt(r.line, t.Bytes, 10)
	r.line = append(r.line, `,"ops":`...)
	r.line = strconv.AppendInt(r.line, t.Ops, 10)
	r.line = append(r.line, "}}\n"...)
	return r.write(r.line)
}

func (r *reporter) result(result Result) error {
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(line{Result: &result}); err != nil {
		return fmt.Errorf("load: spell the result: %w", err)
	}
	return r.write(b.Bytes())
}

func (r *reporter) write(b []byte) error {
	for len(b) > 0 {
		n, _, errno := unix.RawSyscall(unix.SYS_WRITE, r.fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			b = b[n:]
		case unix.EINTR:
		default:
			return fmt.Errorf("load: report: %w", errno)
		}
	}
	return nil
}
