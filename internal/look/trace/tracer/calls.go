//go:build amd64 || arm64

package tracer

import (
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/trace"
)

// systemCalls are the system calls that do I/O to files, by number.
func systemCalls() map[int]call {
	return map[int]call{
		unix.SYS_WRITE:           {kind: trace.Write},
		unix.SYS_PWRITE64:        {kind: trace.Write},
		unix.SYS_WRITEV:          {kind: trace.Write},
		unix.SYS_PWRITEV:         {kind: trace.Write},
		unix.SYS_PWRITEV2:        {kind: trace.Write},
		unix.SYS_SENDFILE:        {kind: trace.Write, sendfile: true},
		unix.SYS_COPY_FILE_RANGE: {kind: trace.Write, argument: 2},
		unix.SYS_SPLICE:          {kind: trace.Write, argument: 2},
		unix.SYS_READ:            {kind: trace.Read},
		unix.SYS_PREAD64:         {kind: trace.Read},
		unix.SYS_READV:           {kind: trace.Read},
		unix.SYS_PREADV:          {kind: trace.Read},
		unix.SYS_PREADV2:         {kind: trace.Read},
		unix.SYS_FSYNC:           {kind: trace.Fsync},
		unix.SYS_FDATASYNC:       {kind: trace.Fsync},
		unix.SYS_SYNC_FILE_RANGE: {kind: trace.Fsync},
		unix.SYS_SYNCFS:          {kind: trace.Fsync, anyFile: true},
		unix.SYS_SYNC:            {kind: trace.Fsync, anyFile: true},
		unix.SYS_IO_SUBMIT:       {aio: true},
		unix.SYS_IO_GETEVENTS:    {aio: true, kind: trace.Read},
		unix.SYS_IO_PGETEVENTS:   {aio: true, kind: trace.Read},
		unix.SYS_MSYNC:           {kind: trace.Fsync, anyFile: true},
	}
}
