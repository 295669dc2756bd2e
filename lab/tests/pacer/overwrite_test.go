package pacer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

const page = 4096

// What writes pages into a file that is in the page cache is charged what the disk gets, and
// not the folios that the pages are in. Each case writes as many pages of a file, and its name
// is how.
func TestSmallOverwritesArePaced(t *testing.T) {
	for _, c := range []struct {
		name string
		fs   string
		long bool
	}{
		{"scattered", "ext4", false}, {"scattered", "xfs", true}, {"in order", "ext4", true},
		{"in order", "xfs", true}, {"again and again", "ext4", true}, {"log", "ext4", true},
		{"mapped", "ext4", true}, {"mapped", "xfs", true}, {"direct", "ext4", true},
		{"spliced", "ext4", true},
		{"partly then at once", "xfs", true}, {"partly then at once", "ext4", true},
	} {
		t.Run(c.name+"/"+c.fs, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.Newest, lab.FS(c.fs))
			if c.long {
				lab.Need(t, lab.Whole)
			}
			fewer(t, e)
			const rate, seconds = 10_000_000, 5
			disk := lab.Disk(t, lab.FS(c.fs))
			file := filepath.Join(disk.Dir, "f")
			lab.Ratio(t, c.name, rate, lab.Written, func() float64 {
				cache(t, file, 128<<20)
				return rate * seconds / overwritten(t, disk.Dir, rate, c.name, file, rate*seconds/page).Seconds()
			})
		})
	}
}

// cache makes a file that is in the page cache, in large folios where there are any, and on disk.
func cache(t *testing.T, file string, size int) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for piece := make([]byte, 1<<20); size > 0; size -= len(piece) {
		if _, err := f.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// overwritten is how long it takes to write so many pages in a way.
func overwritten(t *testing.T, dir string, rate int, way, file string, pages int) time.Duration {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return paced(t, dir, rate, fmt.Sprintf("%s='%s' %s %s %d", writer, overwrite+way, program, file, pages*page))
}

// overwrite begins the names of the writers that write over a file that is there.
const overwrite = "over "

// ways write so many pages of a file of more.
var ways = map[string]func(f *os.File, pages int) error{
	"scattered": func(f *os.File, pages int) error { return scatter(f, pages, 1) },
	"in order": func(f *os.File, pages int) error {
		for i := range pages {
			if _, err := f.WriteAt(make([]byte, page), int64(i)*page); err != nil {
				return err
			}
		}
		return nil
	},
	// A guest makes no more than 55,000 calls a second, and one beside another half of that: both of
	// these make 10,000, so that the limit is what they wait for.
	"again and again": func(f *os.File, pages int) error { return scatter(f, pages, 4) },
	"log": func(f *os.File, pages int) error { // lines of a new file
		log, err := os.Create(f.Name() + ".log")
		if err != nil {
			return err
		}
		defer log.Close()
		line := []byte(strings.Repeat("x", 1023) + "\n")
		for range pages * page / len(line) {
			if _, err := log.Write(line); err != nil {
				return err
			}
		}
		return nil
	},
	"mapped": func(f *os.File, pages int) error { // a store has all of a folio written
		return storeInto(f, pages)
	},
	"direct": func(f *os.File, pages int) error {
		direct, err := os.OpenFile(f.Name(), os.O_WRONLY|unix.O_DIRECT, 0)
		if err != nil {
			return err
		}
		defer direct.Close()
		return scatter(direct, pages, 1)
	},
	"spliced": splice,
	"partly then at once": func(f *os.File, pages int) error {
		if err := partly(f, pages); err != nil {
			return err
		}
		begin := time.Now()
		if _, err := f.WriteAt(make([]byte, pages*page), 0); err != nil {
			return err
		}
		for time.Since(begin) < 2*time.Second { // who ends at once is not paused for it
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	},
}

// folio is the largest that the page cache makes of a file's pages when they are written in a
// piece of a megabyte, in pages.
const folio = 256

// partly writes a page of each folio among so many pages. The rest is in none of the counters.
func partly(f *os.File, pages int) error {
	for i := 0; i < pages; i += folio {
		if _, err := f.WriteAt(make([]byte, page), int64(i)*page); err != nil {
			return err
		}
	}
	return nil
}

// scatter writes each of so many pages of a file some times, far from each other.
func scatter(f *os.File, pages, times int) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	buf, err := unix.Mmap(-1, 0, page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE) // O_DIRECT takes whole pages
	if err != nil {
		return err
	}
	const step = 7919 // a prime: all pages come once
	all := int(st.Size()) / page
	for i, at := 0, 0; i < pages; i, at = i+1, (at+step)%all {
		for range times {
			if _, err := unix.Pwrite(int(f.Fd()), buf, int64(at)*page); err != nil {
				return err
			}
		}
	}
	return unix.Munmap(buf)
}

// storeInto stores into so many pages in turn, which are there.
func storeInto(f *os.File, pages int) error {
	mapped, err := unix.Mmap(int(f.Fd()), 0, pages*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	for at := 0; at < len(mapped); at += page {
		mapped[at] = 1
	}
	return unix.Munmap(mapped)
}

// splice writes what another part of the file has, which no counter of calls has (wchar).
func splice(f *os.File, pages int) error {
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer from.Close()
	defer to.Close()
	for i := range pages {
		other, at := int64(pages+i)*page, int64(i)*page
		if n, err := unix.Splice(int(f.Fd()), &other, int(to.Fd()), nil, page, 0); err != nil || n != page {
			return fmt.Errorf("splice: %d, %w", n, err)
		}
		if n, err := unix.Splice(int(from.Fd()), nil, int(f.Fd()), &at, page, 0); err != nil || n != page {
			return fmt.Errorf("splice: %d, %w", n, err)
		}
	}
	return nil
}

// overwriter is the writer of a name that overwrite begins; nil: it is none.
func overwriter(name string) func(f *os.File, bytes int) error {
	way, is := strings.CutPrefix(name, overwrite)
	if !is {
		return nil
	}
	return func(f *os.File, bytes int) error { return ways[way](f, bytes/page) }
}
