package load

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A mapping does operations on a shared mapping of the file.
type mapping struct {
	m     []byte
	block []byte // what is stored; nil for a load that reads
	size  int
	page  int
	sum   byte // of what was read, so that it is read
	// whole says that a block is asked for as a whole, before it is touched page by page.
	whole bool
	// before is what the runtime did on faults.
	before bool
}

func newMapping(j Job, f *os.File) (*mapping, error) {
	protection := unix.PROT_READ
	if !j.Read {
		protection |= unix.PROT_WRITE
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(j.Size), protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mmap: %w", err)
	}
	d := &mapping{m: m, size: j.Block, page: os.Getpagesize()}
	if !j.Read {
		d.block = make([]byte, j.Block)
		fill(d.block)
	} else if j.Random || j.Alone {
		d.whole = j.Block > d.page
		if err := unix.Madvise(m, unix.MADV_RANDOM); err != nil {
			return nil, errors.Join(fmt.Errorf("madvise: %w", err), unix.Munmap(m))
		}
	}
	d.before = debug.SetPanicOnFault(true)
	return d, nil
}

func (d *mapping) close() error {
	debug.SetPanicOnFault(d.before)
	return unix.Munmap(d.m)
}

// do reports as an error what mmap(2) reports by SIGBUS: no space, or a disk that fails.
func (d *mapping) do(n uint64, at int64) (err error) {
	defer func() {
		if fault, ok := recover().(runtime.Error); ok {
			err = fmt.Errorf("touch the mapping: %w (SIGBUS: no space left, or an I/O error)", fault)
		}
	}()
	b := d.m[at : at+int64(d.size)]
	if d.block == nil {
		if err := d.ask(b); err != nil {
			return err
		}
		for i := 0; i < len(b); i += d.page {
			d.sum += b[i]
		}
		return nil
	}
	stamp(d.block, n)
	copy(b, d.block)
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_MSYNC, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MS_SYNC)
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return fmt.Errorf("msync: %w", errno)
		}
	}
}

// ask has the kernel read a block in one request: where nothing is read ahead, a touch
// reads one page.
func (d *mapping) ask(b []byte) error {
	if !d.whole {
		return nil
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_MADVISE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), unix.MADV_WILLNEED); errno != 0 {
		return fmt.Errorf("madvise: %w", errno)
	}
	return nil
}

// forget takes the file's pages out of the process's page tables: the kernel evicts
// none that are mapped.
func (d *mapping) forget() error {
	if err := unix.Madvise(d.m, unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("madvise: %w", err)
	}
	return nil
}
