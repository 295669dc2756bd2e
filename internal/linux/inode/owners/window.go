package owners

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/inode"
)

// A window is one page of a file, mapped to be written.
type window struct {
	f    cached
	at   int64
	page []byte
}

const (
	// windowsMax bounds how many places of a file are tried.
	windowsMax = 256
	// clearMax is up to how many of them pages are dropped once more: a writer that goes round
	// the file brings back what was dropped before.
	clearMax = 32
)

// findWindow maps a page of the file that has data and is not in the page cache: it is
// the calling process that brings it there, and its group that is charged.
func findWindow(ctx context.Context, f cached) (*window, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := int64(os.Getpagesize())
	step := max(size, st.Size()/windowsMax/size*size)
	found, clears := false, 0
	for at := int64(0); ; at += step {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at, err = nextData(f, at, size); err != nil {
			return nil, err
		}
		if at < 0 {
			break
		}
		found = true
		w, err := mapWindow(f, at, size)
		if err != nil {
			return nil, err
		}
		resident, err := w.resident()
		if err == nil && resident && clears < clearMax {
			clears++
			resident, err = w.clear()
		}
		if err == nil && !resident {
			return w, nil
		}
		if err := errors.Join(err, w.Close()); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, &inode.Refused{Path: f.Name(), Reason: "it is empty, or has only holes"}
	}
	return nil, &inode.Refused{Path: f.Name(), Reason: "none of its pages can be dropped from the page cache: they are mapped, locked, or always being written"}
}

// nextData returns where at or after a place a page begins with data, or -1. In a hole,
// or where blocks are reserved and not written, a dirty page would allocate.
func nextData(f cached, at, page int64) (int64, error) {
	for {
		data, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return -1, nil
		}
		if err != nil {
			return -1, err
		}
		hole, err := f.Seek(data, unix.SEEK_HOLE)
		if errors.Is(err, unix.ENXIO) { // cut short in between
			return -1, nil
		}
		if err != nil {
			return -1, err
		}
		if at = (data + page - 1) / page * page; at < hole {
			return at, nil
		}
	}
}

func mapWindow(f cached, at, size int64) (*window, error) {
	page, err := unix.Mmap(int(f.Fd()), at, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, &inode.Refused{Path: f.Name(), Reason: "it cannot be mapped: " + err.Error(), Err: err}
	}
	w := &window{f: f, at: at, page: page}
	// What would be read ahead would be charged to the group as well.
	if err := unix.Madvise(page, unix.MADV_RANDOM); err != nil {
		return nil, errors.Join(&os.PathError{Op: "madvise", Path: f.Name(), Err: err}, w.Close())
	}
	return w, nil
}

// Close unmaps the page.
func (w *window) Close() error { return unix.Munmap(w.page) }

// clear drops the pages around the page, and reports whether the page is still there.
func (w *window) clear() (resident bool, err error) {
	if err := w.f.letGoOf(w.at/folioMax*folioMax, folioMax); err != nil {
		return true, err
	}
	return w.resident()
}

// resident reports whether the page is in the page cache. It asks about the mapping: an
// overlay's own inode has no pages.
func (w *window) resident() (bool, error) {
	var state [1]byte
	for {
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&w.page[0])), uintptr(len(w.page)), uintptr(unsafe.Pointer(&state[0])))
		switch errno {
		case 0:
			return state[0]&1 != 0, nil
		case unix.EAGAIN, unix.EINTR: // the kernel was out of memory for a moment
		default:
			return false, &os.PathError{Op: "mincore", Path: w.f.Name(), Err: errno}
		}
	}
}

// round dirties the page and writes it back: one vote for the group that it is charged to.
func (w *window) round() error {
	if err := w.touch(); err != nil {
		return err
	}
	return w.f.writeBack(w.at, int64(len(w.page)))
}

// touch rewrites a byte of the page with its own value. The or is atomic, so a concurrent store
// of another processor is neither lost nor undone. The access faults if the file was cut short
// meanwhile, or if the disk has no room for the changed page.
func (w *window) touch() (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			err = &inode.Refused{Path: w.f.Name(), Reason: "a page of it cannot be written: it was cut short, or its file system is full or has failed", Err: p}
		default:
			panic(p)
		}
	}()
	atomic.OrUint32((*uint32)(unsafe.Pointer(&w.page[0])), 0)
	return nil
}
