package trace_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// I/O without read and write: page faults of a mapped file, each of which brings in a page
// or makes it writable, and sendfile. (The native guest tests that weir reports faults as
// missing where fentry is refused.)
func TestMappedAndSent(t *testing.T) {
	needTrace(t, lab.Guest, lab.FS("ext4"))
	const pages, stored, sends = 256, 64, 32
	page := os.Getpagesize()
	size := pages * page
	file, err := os.Create(filepath.Join(lab.Disk(t, lab.FS("ext4")).Dir, "mapped"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Munmap(mapped); err != nil {
			t.Error(err)
		}
	}()
	if err := unix.Madvise(mapped, unix.MADV_RANDOM); err != nil { // nothing is read ahead
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	var sum byte
	text := traceUntil(t, func() {
		for at := 0; at < size; at += page {
			sum += mapped[at]
		}
		for at := range stored {
			mapped[at*page] = 1 + sum
		}
		for range sends {
			at := int64(0)
			if n, err := unix.Sendfile(int(null.Fd()), int(file.Fd()), &at, page); err != nil || n != page {
				t.Fatalf("sendfile: %d bytes, %v", n, err)
			}
		}
	}, "--ops", "read,fault", "--files")
	var doc struct {
		report
		Files []struct {
			File, Kind   string
			Count, Bytes int
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, f := range doc.Files {
		if f.File == file.Name() {
			seen[f.Kind] = f.Count
			t.Logf("%d %ss, %d bytes", f.Count, f.Kind, f.Bytes)
		}
	}
	// A fault that waits for the disk lets go of the process's memory map, and comes again.
	if least := fewest(pages+stored, doc.Lost); seen["fault"] < least || seen["fault"] > 2*pages+stored {
		t.Errorf("%d faults seen, of %d pages read and %d made writable", seen["fault"], pages, stored)
	}
	if seen["read"] < fewest(sends, doc.Lost) || seen["read"] > sends {
		t.Errorf("%d reads seen, sendfile was called %d times", seen["read"], sends)
	}
	if faults := doc.of(t, "fault"); faults.Split["device"] == 0 {
		t.Errorf("nothing of cold faults was the device's: %v", faults.Split)
	}
}
