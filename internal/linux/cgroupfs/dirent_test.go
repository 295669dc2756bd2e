package cgroupfs

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// entry is a struct linux_dirent64 as the kernel packs it: padded to 8 bytes.
func entry(kind byte, name string) []byte {
	size := (19 + len(name) + 1 + 7) / 8 * 8
	b := make([]byte, size)
	binary.NativeEndian.PutUint16(b[16:], uint16(size))
	b[18] = kind
	copy(b[19:], name)
	return b
}

func TestDirectories(t *testing.T) {
	var buf []byte
	for _, e := range [][]byte{entry(unix.DT_DIR, "."), entry(unix.DT_DIR, ".."), entry(unix.DT_REG, "io.max"), entry(unix.DT_DIR, "a"),
		entry(unix.DT_LNK, "link"), entry(unix.DT_DIR, strings.Repeat("x", 255)), entry(unix.DT_DIR, "...")} {
		buf = append(buf, e...)
	}
	want := []string{"a", strings.Repeat("x", 255), "..."}
	if got := directories(buf); !reflect.DeepEqual(got, want) {
		t.Errorf("directories = %q, want %q", got, want)
	}
	for cut := range buf {
		directories(buf[:cut]) // must end, whatever is cut off
	}
}

func FuzzDirectories(f *testing.F) {
	f.Add(append(entry(unix.DT_DIR, "a"), entry(unix.DT_REG, "b")...))
	f.Add(entry(unix.DT_DIR, ".."))
	f.Add(make([]byte, 64))
	f.Fuzz(func(t *testing.T, buf []byte) {
		for _, name := range directories(buf) {
			if name == "." || name == ".." || strings.ContainsRune(name, 0) || len(name) > len(buf) {
				t.Fatalf("directories has %q", name)
			}
		}
	})
}
