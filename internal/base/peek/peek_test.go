package peek

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	if _, err := File(name, Short); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of no file: %v", err)
	}
	for size, want := range map[int]int{0: 0, 10: 10, Short: Short, 3 * Short: Short} {
		if err := os.WriteFile(name, []byte(strings.Repeat("x", size)), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := File(name, Short); err != nil || len(got) != want {
			t.Errorf("%d of %d bytes, %v", len(got), size, err)
		}
	}
	fifo := name + ".fifo"
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := File(fifo, Short); err != nil || len(got) != 0 {
		t.Errorf("of a FIFO: %q, %v", got, err)
	}
	if got, err := File("/dev/zero", 10); err != nil || len(got) != 10 {
		t.Errorf("of a file without an end: %d bytes, %v", len(got), err)
	}
}
