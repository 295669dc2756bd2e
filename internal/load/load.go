package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Path is how an I/O reaches the disk.
type Path string

// The paths.
const (
	Direct   Path = "direct"   // O_DIRECT: past the page cache
	Buffered Path = "buffered" // into the page cache; the kernel writes it back later
	Sync     Path = "sync"     // O_DSYNC: into the page cache, and each write waits for the disk
)

// A Job is a load.
type Job struct {
	Path  Path
	Read  bool // read and not write
	File  string
	Block int           // bytes an operation; direct I/O needs a multiple of 512
	Size  int64         // bytes of the file that are used, round and round
	Warm  time.Duration // left out of the counts, from the start
	For   time.Duration // counted, after Warm
}

// A Result is what the load's own process saw, within the window counted.
type Result struct {
	Bytes   int64         `json:"bytes"`
	Ops     int64         `json:"ops"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// BytesPerSec returns the rate.
func (r Result) BytesPerSec() float64 { return float64(r.Bytes) / r.Elapsed.Seconds() }

// OpsPerSec returns the rate of operations.
func (r Result) OpsPerSec() float64 { return float64(r.Ops) / r.Elapsed.Seconds() }

// Run does the job. A file to write is made, and is left for the caller to remove.
func Run(ctx context.Context, j Job) (Result, error) {
	if j.Block <= 0 || j.Size < int64(j.Block) || j.For <= 0 {
		return Result{}, fmt.Errorf("load %s: block %d, size %d, time %s: each must be positive, and the size hold a block", j.File, j.Block, j.Size, j.For)
	}
	f, err := j.open()
	if err != nil {
		return Result{}, err
	}
	defer f.Close()
	buf, err := unix.Mmap(-1, 0, j.Block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return Result{}, fmt.Errorf("load %s: allocate a block: %w", j.File, err)
	}
	defer func() { _ = unix.Munmap(buf) }()
	for i := range buf {
		buf[i] = byte(i * 7) // not zeros: some devices make nothing of those
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return j.loop(ctx, f, buf)
}

func (j Job) open() (*os.File, error) {
	flags := os.O_RDWR | os.O_CREATE
	if j.Read {
		flags = os.O_RDONLY
	}
	switch j.Path {
	case Direct:
		flags |= unix.O_DIRECT
	case Sync:
		flags |= unix.O_DSYNC
	case Buffered:
	default:
		return nil, fmt.Errorf("load %s: no path of an I/O is called %q", j.File, j.Path)
	}
	f, err := os.OpenFile(j.File, flags|unix.O_NOFOLLOW, 0o600)
	if errors.Is(err, unix.EINVAL) && j.Path == Direct {
		return nil, fmt.Errorf("load %s: the file system has no direct I/O", j.File)
	}
	return f, err
}

func (j Job) loop(ctx context.Context, f *os.File, buf []byte) (Result, error) {
	var r Result
	began := time.Now()
	var counted time.Time
	blocks := j.Size / int64(j.Block)
	for n := int64(0); ; n++ {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if err := j.one(f, buf, n%blocks*int64(j.Block)); err != nil {
			return r, fmt.Errorf("load %s: %w", j.File, err)
		}
		now := time.Now()
		switch {
		case counted.IsZero() && now.Sub(began) >= j.Warm:
			// The window starts as an operation ends, and ends as one ends.
			counted = now
		case !counted.IsZero():
			r.Bytes += int64(len(buf))
			r.Ops++
			if r.Elapsed = now.Sub(counted); r.Elapsed >= j.For {
				return r, nil
			}
		}
	}
}

// one does one operation. It goes around Go's scheduler (RawSyscall): a thread that
// announces each system call wakes the runtime's monitor, which costs more than the
// operation where processors are few or emulated. Nothing else wants this thread: a
// load is all that its process does.
func (j Job) one(f *os.File, buf []byte, at int64) error {
	call := uintptr(unix.SYS_PWRITE64)
	if j.Read {
		call = unix.SYS_PREAD64
	}
	for {
		n, _, errno := unix.RawSyscall6(call, f.Fd(), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(at), 0, 0)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return errno
		case int(n) == len(buf):
			return nil
		case j.Read:
			return io.ErrUnexpectedEOF
		default:
			return io.ErrShortWrite
		}
	}
}
