package trace_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// An ioRequest and an ioAnswer are struct iocb and struct io_event of linux/aio_abi.h.
type ioRequest struct {
	data   uint64
	_      uint64
	opcode uint16
	_      int16
	fd     uint32
	buffer uint64
	bytes  uint64
	offset int64
	_      uint64
	_      uint64
}

type ioAnswer struct {
	data, request   uint64
	result, result2 int64
}

// Of IOCB_CMD_.
const (
	ioRead  = 0
	ioWrite = 1
	ioFsync = 2
)

// submitAll has io_submit do a job's I/O, as fio --ioengine=libaio does: so many requests at
// a time, each by a call of its own if they are Apart.
func (j job) submitAll(d *done, fd int, buf []byte) (err error) {
	var context uint64
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, uintptr(j.AIO), uintptr(unsafe.Pointer(&context)), 0); errno != 0 {
		return fmt.Errorf("io_setup: %w", errno)
	}
	defer func() {
		if _, _, errno := unix.Syscall(unix.SYS_IO_DESTROY, uintptr(context), 0, 0); errno != 0 {
			err = errors.Join(err, fmt.Errorf("io_destroy: %w", errno))
		}
	}()
	opcode, of := uint16(ioWrite), &d.Write
	if j.Read {
		opcode, of = ioRead, &d.Read
	}
	requests := make([]ioRequest, j.AIO)
	blocks := j.Size / int64(j.Block)
	for n, began := int64(0), time.Now(); time.Since(began) < j.For; {
		for i := range requests {
			requests[i] = ioRequest{opcode: opcode, fd: uint32(fd), buffer: uint64(uintptr(unsafe.Pointer(&buf[0]))), bytes: uint64(len(buf)), offset: n % blocks * int64(j.Block)}
			n++
		}
		if err := j.submit(context, requests, of); err != nil {
			return err
		}
		if j.Fsync > 0 && n%int64(j.Fsync) == 0 {
			if err := j.submit(context, []ioRequest{{opcode: ioFsync, fd: uint32(fd)}}, &d.Fsync); err != nil {
				return err
			}
		}
	}
	return nil
}

// submit gives the kernel requests, and takes the answers as they come.
func (j job) submit(context uint64, requests []ioRequest, of *timed) error {
	places := make([]*ioRequest, len(requests))
	for i := range requests {
		places[i] = &requests[i]
	}
	began := make([]time.Time, len(requests))
	for at, now := 0, time.Now(); at < len(places); now = time.Now() {
		count := len(places) - at
		if j.Apart {
			count = 1
		}
		did, _, errno := unix.RawSyscall(unix.SYS_IO_SUBMIT, uintptr(context), uintptr(count), uintptr(unsafe.Pointer(&places[at])))
		if errno != 0 {
			return fmt.Errorf("io_submit: %w", errno)
		}
		for range did {
			began[at] = now
			at++
		}
	}
	answers := make([]ioAnswer, len(requests))
	for left := len(requests); left > 0; {
		did, _, errno := unix.RawSyscall6(unix.SYS_IO_GETEVENTS, uintptr(context), 1, uintptr(left), uintptr(unsafe.Pointer(&answers[0])), 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return fmt.Errorf("io_getevents: %w", errno)
		}
		now := time.Now()
		for _, a := range answers[:did] {
			i := slices.IndexFunc(places, func(p *ioRequest) bool { return uint64(uintptr(unsafe.Pointer(p))) == a.request })
			if a.result < 0 {
				return fmt.Errorf("request %d: %w", i, unix.Errno(-a.result))
			}
			of.add(now.Sub(began[i]), 1)
			left--
		}
	}
	runtime.KeepAlive(places)
	return nil
}

// aioWays are those in which io_submit is asked: one request at a time, eight by a call each,
// and eight by one call.
var aioWays = map[string]job{"one": {AIO: 1}, "eight": {AIO: 8, Apart: true}, "together": {AIO: 8}}

// throttledAIO asserts that what a rule holds of io_submit's requests is seen, each with all
// of its time, and that the rule is named.
func throttledAIO(t *testing.T, short ...string) {
	t.Helper()
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	limit := lab.Scaled(lab.Here(t), 10_000_000)
	g.limitWrites(t, disk.Number.String(), strconv.Itoa(limit))
	for name, j := range aioWays {
		if testing.Short() && !slices.Contains(short, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			j.File, j.Groups, j.For, j.Flags, j.Block, j.Size = filepath.Join(disk.Dir, name), g.dirs(), traceFor(t), unix.O_DIRECT, 256<<10, 16<<20
			j.First = lab.Here(t).Lane == "native" // emulated, the kernel's own record is compared
			written(t, j.File, j.Size)
			r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
			addsUp(t, r, "write", own.Write)
			for _, b := range r.Behind {
				if b.Direction == "write" {
					t.Errorf("behind the scenes: %+v", b)
				}
			}
			if len(r.Open) > 0 {
				t.Errorf("not ended: %+v", r.Open)
			}
			j.binds(t, own.Write, limit)
			r.slowest(t).blames(t, "blk_throttle", causeMin)
		})
	}
}

func TestAIOThrottle(t *testing.T) {
	needTrace(t, lab.Whole, lab.Guest, lab.NoSystemd, lab.FS("ext4")) // by default natively
	throttledAIO(t, "together")                                       // the others natively
}

func TestAIOThrottleNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.FS("ext4"))
	t.Parallel() // it waits for the throttle
	throttledAIO(t, "one")
}
