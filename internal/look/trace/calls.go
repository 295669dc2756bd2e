//go:build amd64 || arm64

package trace

import "golang.org/x/sys/unix"

// systemCalls are the system calls that do I/O to files, by number.
func systemCalls() map[int]call {
	return map[int]call{
		unix.SYS_WRITE:           {kind: Write},
		unix.SYS_PWRITE64:        {kind: Write},
		unix.SYS_WRITEV:          {kind: Write},
		unix.SYS_PWRITEV:         {kind: Write},
		unix.SYS_PWRITEV2:        {kind: Write},
		unix.SYS_SENDFILE:        {kind: Write, sendfile: true},
		unix.SYS_COPY_FILE_RANGE: {kind: Write, argument: 2},
		unix.SYS_SPLICE:          {kind: Write, argument: 2},
		unix.SYS_READ:            {kind: Read},
		unix.SYS_PREAD64:         {kind: Read},
		unix.SYS_READV:           {kind: Read},
		unix.SYS_PREADV:          {kind: Read},
		unix.SYS_PREADV2:         {kind: Read},
		unix.SYS_FSYNC:           {kind: Fsync},
		unix.SYS_FDATASYNC:       {kind: Fsync},
		unix.SYS_SYNC_FILE_RANGE: {kind: Fsync},
		unix.SYS_SYNCFS:          {kind: Fsync, anyFile: true},
		unix.SYS_SYNC:            {kind: Fsync, anyFile: true},
		unix.SYS_IO_SUBMIT:       {aio: true},
		unix.SYS_IO_GETEVENTS:    {aio: true, kind: Read},
		unix.SYS_IO_PGETEVENTS:   {aio: true, kind: Read},
		unix.SYS_MSYNC:           {kind: Fsync, anyFile: true},
	}
}
