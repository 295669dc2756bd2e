package pagecache

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

const size = 1 << 20

// onDisk opens a file of a file system that has a disk: a memory file system can evict
// nothing.
func onDisk(t *testing.T) *os.File {
	t.Helper()
	for _, dir := range []string{t.TempDir(), "/var/tmp", "."} {
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil || st.Type == unix.TMPFS_MAGIC || st.Type == unix.OVERLAYFS_SUPER_MAGIC {
			continue
		}
		f, err := os.CreateTemp(dir, "weir-pagecache-")
		if err != nil {
			continue
		}
		t.Cleanup(func() { f.Close() })
		if err := os.Remove(f.Name()); err != nil {
			t.Fatal(err)
		}
		for range size / 4096 { // a large write makes a large folio, which goes as a whole or not
			if _, err := f.Write(bytes.Repeat([]byte("weir"), 1024)); err != nil {
				t.Fatal(err)
			}
		}
		return f
	}
	t.Fatal("none of the folder for temporary files, /var/tmp and this package's folder is on a disk: set TMPDIR to one that is")
	return nil
}

// ways are the two that Resident has.
func ways(f *os.File) map[string]func(off, length int64) (Residency, error) {
	return map[string]func(off, length int64) (Residency, error){
		"cachestat": func(off, length int64) (Residency, error) { return statCache(f, off, length) },
		"mincore":   func(off, length int64) (Residency, error) { return countCore(f, off, length) },
		"either":    func(off, length int64) (Residency, error) { return Resident(f, off, length) },
	}
}

func TestResidentAndEvict(t *testing.T) {
	f := onDisk(t)
	page := int64(os.Getpagesize())
	check := func(when string, off, length, want int64) {
		t.Helper()
		for name, look := range ways(f) {
			r, err := look(off, length)
			if name == "cachestat" && err == unix.ENOSYS {
				continue // before 6.5
			}
			if err != nil || r.Cached != want {
				t.Errorf("%s, %s of %d bytes from %d: %+v, %v; want %d cached", when, name, length, off, r, err, want)
			}
		}
	}
	check("written", 0, size, size)
	check("to the end", 0, 0, size)
	check("beyond the end", 0, 10*size, size)
	check("a part", 4*page, 8*page, 8*page)
	check("within pages", 4*page+1, page, 2*page)
	check("outside", 2*size, size, 0)
	if r, err := Resident(f, 0, 0); err != nil || r.Dirty+r.Writeback > size || r.StateKnown && r.Dirty == 0 && r.Writeback == 0 {
		t.Errorf("written: %+v, %v", r, err)
	}
	if err := Evict(f, 0, size/2); err != nil {
		t.Fatal(err)
	}
	check("half evicted", 0, size/2, 0)
	check("half evicted", size/2, 0, size/2)
	if r, err := Resident(f, 0, 0); err != nil || r.Dirty+r.Writeback != 0 {
		t.Errorf("synced: %+v, %v", r, err)
	}
	if err := Drop(f, 0, 0); err != nil {
		t.Fatal(err)
	}
	check("evicted", 0, 0, 0)
}

// What a process has mapped and touched stays, and Resident says so.
func TestEvictLeavesWhatIsMapped(t *testing.T) {
	f := onDisk(t)
	m, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(m) }()
	if err := Evict(f, 0, 0); err != nil {
		t.Fatal(err)
	}
	if r, err := Resident(f, 0, 0); err != nil || r.Cached != size {
		t.Errorf("mapped: %+v, %v; want all cached", r, err)
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	f := onDisk(t)
	f.Close()
	closed := map[string]error{"Evict": Evict(f, 0, 0), "Drop": Drop(f, 0, 0)}
	_, closed["Resident"] = Resident(f, 0, 0)
	for name, err := range closed {
		if err == nil || !bytes.Contains([]byte(err.Error()), []byte(f.Name())) {
			t.Errorf("%s of a closed file: %v", name, err)
		}
	}
}
