package pacer_test

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The little of io_uring that a writer takes (include/uapi/linux/io_uring.h).
const (
	uringDepth  = 8
	uringBlock  = 16 << 10
	uringWrite  = 23 // IORING_OP_WRITE, Linux 5.6
	uringWait   = 1  // IORING_ENTER_GETEVENTS
	uringSQRing = 0
	uringCQRing = 0x8000000
	uringSQEs   = 0x10000000
)

type uringOffsets struct{ head, tail, mask, entries, flags, dropped, array, _, _, _ uint32 }

type uringParams struct {
	sqEntries, cqEntries, flags, sqCPU, sqIdle, features, wq uint32
	_                                                        [3]uint32
	sq, cq                                                   uringOffsets
}

type uringSQE struct {
	opcode, flags uint8
	priority      uint16
	fd            int32
	offset        uint64
	address       uint64
	bytes         uint32
	_             [36]byte
}

type uringCQE struct {
	_     uint64
	res   int32
	flags uint32
}

// writeUring writes a file through the page cache, uringDepth blocks under way at a time.
func writeUring(f *os.File, bytes int) error {
	var p uringParams
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, uringDepth, uintptr(unsafe.Pointer(&p)), 0)
	if errno != 0 {
		return fmt.Errorf("io_uring_setup: %w", errno)
	}
	ring := int(fd)
	rw, shared := unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED
	sq, err1 := unix.Mmap(ring, uringSQRing, int(p.sq.array+4*p.sqEntries), rw, shared)
	cq, err2 := unix.Mmap(ring, uringCQRing, int(p.cq.dropped)+16*int(p.cqEntries), rw, shared)
	entries, err3 := unix.Mmap(ring, uringSQEs, int(p.sqEntries)*64, rw, shared)
	block, err4 := unix.Mmap(-1, 0, uringBlock, rw, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return fmt.Errorf("map the ring: %w", err)
	}
	word := func(ring []byte, at uint32) *uint32 { return (*uint32)(unsafe.Pointer(&ring[at])) }
	for at := 0; at < bytes; {
		n := min(uringDepth, (bytes-at+uringBlock-1)/uringBlock)
		tail := atomic.LoadUint32(word(sq, p.sq.tail))
		for i := range n {
			slot := (tail + uint32(i)) & *word(sq, p.sq.mask)
			*(*uringSQE)(unsafe.Pointer(&entries[slot*64])) = uringSQE{opcode: uringWrite, fd: int32(f.Fd()),
				offset: uint64(at), address: uint64(uintptr(unsafe.Pointer(&block[0]))), bytes: uringBlock}
			*word(sq, p.sq.array+4*slot) = slot
			at += uringBlock
		}
		atomic.StoreUint32(word(sq, p.sq.tail), tail+uint32(n))
		for submitted := 0; ; {
			did, _, errno := unix.Syscall6(unix.SYS_IO_URING_ENTER, uintptr(ring), uintptr(n-submitted), uintptr(n), uringWait, 0, 0)
			if errno != 0 && errno != unix.EINTR && errno != unix.EAGAIN {
				return fmt.Errorf("io_uring_enter: %w", errno)
			}
			if errno == 0 {
				submitted += int(did)
			}
			if atomic.LoadUint32(word(cq, p.cq.tail))-atomic.LoadUint32(word(cq, p.cq.head)) >= uint32(n) {
				break
			}
		}
		// io_cqring_offsets: head, tail, ring_mask, ring_entries, overflow, cqes.
		head := atomic.LoadUint32(word(cq, p.cq.head))
		for i := range n {
			slot := (head + uint32(i)) & *word(cq, p.cq.mask)
			if got := (*uringCQE)(unsafe.Pointer(&cq[p.cq.dropped+16*slot])).res; got != uringBlock {
				return fmt.Errorf("a write of %d bytes ended with %d", uringBlock, got)
			}
		}
		atomic.StoreUint32(word(cq, p.cq.head), head+uint32(n))
	}
	return nil
}
