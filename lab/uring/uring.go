// Package uring has io_uring do I/O to a file, as far as tests need a program that uses
// it (include/uapi/linux/io_uring.h).
package uring

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests by their opcode.
const (
	Fsync = 3
	Read  = 22 // Linux 5.6, as Write
	Write = 23
)

// Flags of a request.
const (
	Linked = 1 << 2 // the next one begins when it is done
	Async  = 1 << 4 // by a worker from the start
	Silent = 1 << 6 // no answer, Linux 5.17
)

// Polled has a thread of the kernel look for requests (IORING_SETUP_SQPOLL).
const Polled = 1 << 1

const (
	enterWait = 1 // IORING_ENTER_GETEVENTS
	enterWake = 2 // IORING_ENTER_SQ_WAKEUP
	sqRing    = 0
	cqRing    = 0x8000000
	sqEntries = 0x10000000
)

type offsets struct{ head, tail, mask, entries, flags, dropped, array, _, _, _ uint32 }

type params struct {
	sqEntries, cqEntries, flags, sqCPU, sqIdle, features, wq uint32
	_                                                        [3]uint32
	sq, cq                                                   offsets
}

type submission struct {
	opcode, flags uint8
	priority      uint16
	fd            int32
	offset        uint64
	address       uint64
	bytes         uint32
	_             uint32
	data          uint64
	_             [24]byte
}

type completion struct {
	data  uint64
	res   int32
	flags uint32
}

// A Ring takes requests and answers them.
type Ring struct {
	fd              int
	p               params
	sq, cq, entries []byte
}

// New makes a ring for so many requests at a time, which must be a power of 2. Flags is 0,
// or Polled.
func New(depth int, flags uint32) (_ *Ring, err error) {
	r := &Ring{p: params{flags: flags}}
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uintptr(depth), uintptr(unsafe.Pointer(&r.p)), 0)
	if errno != 0 {
		return nil, fmt.Errorf("io_uring_setup: %w", errno)
	}
	r.fd = int(fd)
	rw := unix.PROT_READ | unix.PROT_WRITE
	var errs [3]error
	r.sq, errs[0] = unix.Mmap(r.fd, sqRing, int(r.p.sq.array+4*r.p.sqEntries), rw, unix.MAP_SHARED)
	r.cq, errs[1] = unix.Mmap(r.fd, cqRing, int(r.p.cq.dropped)+16*int(r.p.cqEntries), rw, unix.MAP_SHARED)
	r.entries, errs[2] = unix.Mmap(r.fd, sqEntries, int(r.p.sqEntries)*64, rw, unix.MAP_SHARED)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(fmt.Errorf("map the ring: %w", err), r.Close())
	}
	return r, nil
}

// Close lets the ring go.
func (r *Ring) Close() error {
	errs := []error{unix.Close(r.fd)}
	for _, m := range [][]byte{r.sq, r.cq, r.entries} {
		if m != nil {
			errs = append(errs, unix.Munmap(m))
		}
	}
	return errors.Join(errs...)
}

// A Request is one operation on a file. The block must not be Go's memory.
type Request struct {
	Opcode uint8
	Flags  uint8
	FD     int
	Block  []byte // nil: of Fsync
	Offset int64
}

// Do submits requests together and waits for the answers. It returns how long they took, summed
// over those that are answered; one that does less than it was asked for is an error.
func (r *Ring) Do(requests ...Request) (took time.Duration, err error) {
	n, answers := uint32(len(requests)), uint32(0)
	tail := atomic.LoadUint32(word(r.sq, r.p.sq.tail))
	for i, q := range requests {
		slot := (tail + uint32(i)) & *word(r.sq, r.p.sq.mask)
		s := submission{opcode: q.Opcode, flags: q.Flags, fd: int32(q.FD), offset: uint64(q.Offset), data: uint64(i)}
		if len(q.Block) > 0 {
			s.address, s.bytes = uint64(uintptr(unsafe.Pointer(&q.Block[0]))), uint32(len(q.Block))
		}
		*(*submission)(unsafe.Pointer(&r.entries[slot*64])) = s
		*word(r.sq, r.p.sq.array+4*slot) = slot
		if q.Flags&Silent == 0 {
			answers++
		}
	}
	began := time.Now()
	atomic.StoreUint32(word(r.sq, r.p.sq.tail), tail+n)
	flags := uintptr(enterWait)
	if r.p.flags&Polled != 0 {
		flags |= enterWake
	}
	for submitted, seen := uint32(0), uint32(0); seen < answers || submitted < n; {
		did, _, errno := unix.RawSyscall6(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(n-submitted), uintptr(min(1, answers-seen)), flags, 0, 0)
		if errno != 0 && errno != unix.EINTR && errno != unix.EAGAIN {
			return 0, fmt.Errorf("io_uring_enter: %w", errno)
		}
		if errno == 0 {
			submitted += uint32(did)
		}
		got, err := r.reap(requests)
		if err != nil {
			return 0, err
		}
		took += time.Duration(got) * time.Since(began)
		seen += got
	}
	return took, nil
}

// reap takes the answers that are there.
func (r *Ring) reap(requests []Request) (n uint32, err error) {
	// io_cqring_offsets: head, tail, ring_mask, ring_entries, overflow, cqes.
	head := atomic.LoadUint32(word(r.cq, r.p.cq.head))
	n = atomic.LoadUint32(word(r.cq, r.p.cq.tail)) - head
	for i := range n {
		slot := (head + i) & *word(r.cq, r.p.cq.mask)
		c := (*completion)(unsafe.Pointer(&r.cq[r.p.cq.dropped+16*slot]))
		if want := int32(len(requests[c.data].Block)); c.res != want {
			return 0, fmt.Errorf("request %d: %d, want %d", c.data, c.res, want)
		}
	}
	atomic.StoreUint32(word(r.cq, r.p.cq.head), head+n)
	return n, nil
}

func word(ring []byte, at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&ring[at])) }
