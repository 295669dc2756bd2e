package spare

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

func TestMappingOf(t *testing.T) {
	for line, want := range map[string]mapping{
		"00400000-00f62000 r-xp 00000000 fe:00 10029786                           /usr/bin/weird": {0x400000, 0xf62000, "r-xp", "/usr/bin/weird"},
		"00f62000-01b3a000 r--p 00b62000 fe:00 17 /a b (deleted)":                                 {0xf62000, 0x1b3a000, "r--p", "/a b (deleted)"},
		"c000000000-c000400000 rw-p 00000000 00:00 0 ":                                            {0xc000000000, 0xc000400000, "rw-p", ""},
		"7ffd1000-7ffd2000 r-xp 00000000 00:00 0                                  [vdso]":         {0x7ffd1000, 0x7ffd2000, "r-xp", ""},
	} {
		if got, is := mappingOf(line); !is || got != want {
			t.Errorf("%q is %+v, %v", line, got, is)
		}
	}
	for _, line := range []string{"", "x", "2-1 r-xp 0 0:0 1 /a", "1-2 r-xp"} {
		if got, is := mappingOf(line); is {
			t.Errorf("%q is %+v", line, got)
		}
	}
}

// What was written before it was protected is no longer what the file has, and cannot be had again from there: the
// dynamic linker does that with a position-independent program, which crashed.
func TestWhatWasWrittenStays(t *testing.T) {
	page := os.Getpagesize()
	name := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(name, make([]byte, 4*page), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var clean []uintptr
	for i, write := range []bool{true, false, true, false} { // no two next to each other are one mapping
		memory, err := unix.Mmap(int(file.Fd()), int64(i*page), page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Munmap(memory) }()
		if write {
			memory[7] = 1
		} else {
			clean = append(clean, uintptr(unsafe.Pointer(&memory[0])))
		}
		if err := unix.Mprotect(memory, unix.PROT_READ); err != nil {
			t.Fatal(err)
		}
	}
	got := unwritten(name)
	for _, m := range got {
		at := slices.Index(clean, m.from)
		if at < 0 || m.to != m.from+uintptr(page) {
			t.Errorf("%+v is not as the file is; that is at %x", m, clean)
		}
	}
	if len(got) != len(clean) {
		t.Errorf("%+v, want %x", got, clean)
	}
}

// The program is unmapped, and goes on with what it needs. (This one is small, and needs half of itself.)
func TestNow(t *testing.T) {
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for _, m := range program() { // to read it maps all of it
		if _, err := memory.ReadAt(make([]byte, m.to-m.from), int64(m.from)); err != nil {
			t.Fatal(err)
		}
	}
	before := mapped(t)
	Now()
	if after := mapped(t); after > before*3/4 {
		t.Errorf("%d KiB of files are mapped, %d before", after, before)
	}
}

// mapped is how much of files the program has mapped, in KiB.
func mapped(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "RssFile:"); is {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("there is no RssFile")
	return 0
}
