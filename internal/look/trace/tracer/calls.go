//go:build amd64 || arm64

package tracer

import (
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/trace"
)

// systemCalls are the system calls that do I/O to files, by number.
func systemCalls() map[int]call {
	return map[int]call{
		unix.SYS_WRITE:           {function: "write", kind: trace.Write},
		unix.SYS_PWRITE64:        {function: "pwrite64", kind: trace.Write},
		unix.SYS_WRITEV:          {function: "writev", kind: trace.Write},
		unix.SYS_PWRITEV:         {function: "pwritev", kind: trace.Write},
		unix.SYS_PWRITEV2:        {function: "pwritev2", kind: trace.Write},
		unix.SYS_SENDFILE:        {function: "sendfile64", kind: trace.Write, sendfile: true},
		unix.SYS_COPY_FILE_RANGE: {function: "copy_file_range", kind: trace.Write, argument: 2},
		unix.SYS_SPLICE:          {function: "splice", kind: trace.Write, argument: 2},
		unix.SYS_READ:            {function: "read", kind: trace.Read},
		unix.SYS_PREAD64:         {function: "pread64", kind: trace.Read},
		unix.SYS_READV:           {function: "readv", kind: trace.Read},
		unix.SYS_PREADV:          {function: "preadv", kind: trace.Read},
		unix.SYS_PREADV2:         {function: "preadv2", kind: trace.Read},
		unix.SYS_FSYNC:           {function: "fsync", kind: trace.Fsync},
		unix.SYS_FDATASYNC:       {function: "fdatasync", kind: trace.Fsync},
		unix.SYS_SYNC_FILE_RANGE: {function: "sync_file_range", kind: trace.Fsync},
		unix.SYS_SYNCFS:          {function: "syncfs", kind: trace.Fsync, anyFile: true},
		unix.SYS_SYNC:            {function: "sync", kind: trace.Fsync, anyFile: true},
		unix.SYS_IO_SUBMIT:       {function: "io_submit", aio: true},
		unix.SYS_IO_GETEVENTS:    {function: "io_getevents", aio: true, kind: trace.Read},
		unix.SYS_IO_PGETEVENTS:   {function: "io_pgetevents", aio: true, kind: trace.Read},
		unix.SYS_MSYNC:           {function: "msync", kind: trace.Fsync, anyFile: true},
	}
}
