package pagecache

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Evict writes a range of a file to the disk and drops it from the page cache. Length is in
// bytes; 0 means to the end of the file. It waits for the disk.
//
// The kernel may keep pages: those that are mapped or locked somewhere, and all pages of a file
// system in memory. Resident says what is left.
func Evict(f *os.File, off, length int64) error {
	if err := ignoringEINTR(func() error { return unix.Fdatasync(int(f.Fd())) }); err != nil {
		return fmt.Errorf("fdatasync %s: %w", f.Name(), err)
	}
	return Drop(f, off, length)
}

// Drop is Evict for pages that are clean; it waits for no disk. Dirty ones are sent on
// their way and stay. A page at either end that is only partly in the range stays, and
// with it the folio that it is in (mm/fadvise.c, mm/truncate.c).
func Drop(f *os.File, off, length int64) error {
	if err := unix.Fadvise(int(f.Fd()), off, length, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("posix_fadvise %s: %w", f.Name(), err)
	}
	return nil
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}
