package pagecache

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Residency is what the page cache holds of a range of a file, in bytes, by whole
// pages.
type Residency struct {
	Cached int64 // all of it, dirty or not
	// Dirty has not been given to the disk, Writeback is on its way. Both are 0 unless
	// StateKnown: only cachestat(2) tells them.
	Dirty, Writeback int64
	StateKnown       bool
}

// Resident looks up a range of a file. Length is in bytes; 0 means to the end of the file.
// Pages are counted at their full size, so Cached can exceed the range by the rest of its first
// and last page.
//
// The kernel tells only the file's owner, and users who may write to it (mincore(2)); others
// get an error, never a guess.
func Resident(f *os.File, off, length int64) (Residency, error) {
	r, err := statCache(f, off, length)
	// EPERM is also what a container's filter gives for a call that it does not know.
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM) {
		r, err = countCore(f, off, length)
	}
	if err != nil {
		return Residency{}, fmt.Errorf("look up %s in the page cache: %w", f.Name(), err)
	}
	return r, nil
}

func statCache(f *os.File, off, length int64) (Residency, error) {
	page := int64(os.Getpagesize())
	var s unix.Cachestat_t
	err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{Off: uint64(off), Len: uint64(length)}, &s, 0)
	return Residency{
		Cached: int64(s.Cache) * page, Dirty: int64(s.Dirty) * page, Writeback: int64(s.Writeback) * page,
		StateKnown: err == nil,
	}, err
}

// coreMost bounds what is counted page by page, without cachestat(2): a second or two. Any user
// can make a larger file that consists of holes.
const coreMost = 256 << 30

var errHuge = errors.New("it is larger than 256 GiB, which this kernel cannot tell at once")

// coreStep bounds how much is mapped at a time, and with it the answer's memory.
const coreStep = 1 << 30

func countCore(f *os.File, off, length int64) (Residency, error) {
	page := int64(os.Getpagesize())
	info, err := f.Stat()
	if err != nil {
		return Residency{}, err
	}
	end := info.Size() // what is beyond it is in no cache
	if length > 0 {
		end = min(end, off+length)
	}
	if err := mayCount(f, info); err != nil {
		return Residency{}, err
	}
	if end-off > coreMost {
		return Residency{}, errHuge
	}
	var r Residency
	for at := off / page * page; at < end; at += coreStep {
		pages, err := countMapped(f, at, int(min(coreStep, end-at)))
		if err != nil {
			return Residency{}, err
		}
		r.Cached += int64(pages) * page
	}
	return r, nil
}

// mayCount refuses what the kernel would refuse quietly: since 5.2 it calls all pages
// of a file resident that the asker neither owns nor may write to (mm/mincore.c).
func mayCount(f *os.File, info os.FileInfo) error {
	euid := os.Geteuid()
	if st, ok := info.Sys().(*syscall.Stat_t); euid == 0 || ok && int(st.Uid) == euid {
		return nil
	}
	return unix.Faccessat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.W_OK, unix.AT_EACCESS)
}

func countMapped(f *os.File, off int64, length int) (pages int, err error) {
	m, err := unix.Mmap(int(f.Fd()), off, length, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("mmap: %w", err)
	}
	defer func() { err = errors.Join(err, unix.Munmap(m)) }()
	page := os.Getpagesize()
	in := make([]byte, (length+page-1)/page)
	if err := mincore(m, in); err != nil {
		return 0, fmt.Errorf("mincore: %w", err)
	}
	for _, b := range in {
		pages += int(b & 1)
	}
	return pages, nil
}
