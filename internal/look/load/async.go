package load

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Linux AIO (include/uapi/linux/aio_abi.h), which glibc does not wrap either. It is
// older and less than io_uring, and what databases and virtual machines use where that
// is forbidden, as in containers by default.

const (
	aioRead  = 0 // IOCB_CMD_PREAD
	aioWrite = 1 // IOCB_CMD_PWRITE
)

// An iocb is the kernel's struct iocb. Key and flags change places on machines that
// are big-endian; both are 0.
type iocb struct {
	data     uint64
	key      uint32
	flags    uint32
	opcode   uint16
	priority int16
	fd       uint32
	buf      uint64
	bytes    uint64
	offset   int64
	_        uint64
	iocbFlag uint32
	eventFd  uint32
}

// An event is the kernel's struct io_event.
type event struct {
	data uint64 // the iocb's
	_    uint64
	res  int64 // bytes, or -errno
	res2 int64
}

// A slot is one operation under way, and its block.
type slot struct {
	iocb  iocb
	began int64
}

// address is for the kernel only: the slot is not in Go's memory, and stays where it is.
func (s *slot) address() uintptr { return uintptr(unsafe.Pointer(&s.iocb)) }

// An aio keeps Depth operations under way. All that the kernel sees of it lies in
// memory that Go does not manage.
type aio struct {
	job     Job
	context uintptr
	memory  []byte
	blocks  []byte
	slots   []slot
	submit  []uintptr // of iocbs
	events  []event
	order   order
	next    uint64 // operation
}

func (j Job) loopAsync(m *meter, f *os.File) (err error) {
	a, err := newAIO(j, f)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	now, err := m.start()
	if err != nil {
		return err
	}
	for i := range a.slots {
		a.renew(i, now)
		a.submit[i] = a.slots[i].address()
	}
	if err := a.send(len(a.slots)); err != nil {
		return err
	}
	for !m.stopped.Load() {
		ended, err := a.wait()
		if err != nil {
			return err
		}
		now := m.now()
		for _, e := range a.events[:ended] {
			if err := a.check(e); err != nil {
				return err
			}
			_, over, err := m.done(a.slots[e.data].began, now, 0)
			if err != nil || over {
				return err
			}
		}
		now = m.now()
		for i, e := range a.events[:ended] {
			a.renew(int(e.data), now)
			a.submit[i] = a.slots[e.data].address()
		}
		if err := a.send(ended); err != nil {
			return err
		}
	}
	return errStopped
}

func newAIO(j Job, f *os.File) (*aio, error) {
	depth := j.depth()
	a := &aio{job: j, order: newOrder(j)}
	_, _, errno := unix.RawSyscall(unix.SYS_IO_SETUP, uintptr(depth), uintptr(unsafe.Pointer(&a.context)), 0)
	switch errno {
	case 0:
	case unix.ENOSYS:
		return nil, fmt.Errorf("io_setup: the kernel has no AIO: %w", errors.ErrUnsupported)
	case unix.EAGAIN:
		return nil, fmt.Errorf("io_setup: %w (the host's AIO requests are in use; see /proc/sys/fs/aio-nr and aio-max-nr)", errno)
	default:
		return nil, fmt.Errorf("io_setup: %w", errno)
	}
	if err := a.layOut(depth, f); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// layOut puts blocks, slots, pointers to slots and events into one piece of memory.
func (a *aio) layOut(depth int, f *os.File) (err error) {
	blocks := depth * a.job.Block
	slots := (blocks + 7) &^ 7
	submit := slots + depth*int(unsafe.Sizeof(slot{}))
	events := (submit + depth*int(unsafe.Sizeof(uintptr(0))) + 7) &^ 7
	if a.memory, err = allocate(events + depth*int(unsafe.Sizeof(event{}))); err != nil {
		return err
	}
	a.blocks = a.memory[:blocks]
	a.slots = unsafe.Slice((*slot)(unsafe.Pointer(&a.memory[slots])), depth)
	a.submit = unsafe.Slice((*uintptr)(unsafe.Pointer(&a.memory[submit])), depth)
	a.events = unsafe.Slice((*event)(unsafe.Pointer(&a.memory[events])), depth)
	opcode := uint16(aioRead)
	if !a.job.Read {
		opcode = aioWrite
		fill(a.blocks)
	}
	for i := range a.slots {
		block := a.block(i)
		a.slots[i].iocb = iocb{
			data: uint64(i), opcode: opcode, fd: uint32(f.Fd()),
			buf: uint64(uintptr(unsafe.Pointer(&block[0]))), bytes: uint64(len(block)),
		}
	}
	return nil
}

func (a *aio) block(i int) []byte { return a.blocks[i*a.job.Block : (i+1)*a.job.Block] }

// renew makes the next operation of a slot.
func (a *aio) renew(i int, now int64) {
	s := &a.slots[i]
	s.iocb.offset = a.order.at(a.next)
	s.began = now
	if !a.job.Read {
		stamp(a.block(i), a.next)
	}
	a.next++
}

// send submits the first n of what is to be submitted.
func (a *aio) send(n int) error {
	for sent := 0; sent < n; {
		got, _, errno := unix.RawSyscall(unix.SYS_IO_SUBMIT, a.context, uintptr(n-sent), uintptr(unsafe.Pointer(&a.submit[sent])))
		switch errno {
		case 0:
			sent += int(got)
		case unix.EINTR, unix.EAGAIN: // nothing was submitted
		default:
			return fmt.Errorf("io_submit: %w", explain(errno))
		}
	}
	return nil
}

// wait waits for one event and takes all that are there. A signal ends it without any:
// the runtime's own, which lets others run.
func (a *aio) wait() (n int, err error) {
	got, _, errno := unix.RawSyscall6(unix.SYS_IO_GETEVENTS, a.context, 1, uintptr(len(a.events)), uintptr(unsafe.Pointer(&a.events[0])), 0, 0)
	switch errno {
	case 0:
		return int(got), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("io_getevents: %w", errno)
}

func (a *aio) check(e event) error {
	switch {
	case e.res < 0:
		return explain(unix.Errno(-e.res))
	case e.res == int64(a.job.Block):
		return nil
	case a.job.Read:
		return io.ErrUnexpectedEOF
	}
	return io.ErrShortWrite
}

// close waits for what is under way.
func (a *aio) close() error {
	if _, _, errno := unix.Syscall(unix.SYS_IO_DESTROY, a.context, 0, 0); errno != 0 {
		return fmt.Errorf("io_destroy: %w", errno)
	}
	if a.memory == nil {
		return nil
	}
	return unix.Munmap(a.memory)
}
