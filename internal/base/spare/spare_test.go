package spare

import (
	"os"
	"strconv"
	"strings"
	"testing"
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
