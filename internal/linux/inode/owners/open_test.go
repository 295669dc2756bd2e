package owners

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	file, link, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	err := errors.Join(os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, link), unix.Mkfifo(fifo, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	for _, name := range []string{file, "/proc/self/fd/" + strconv.Itoa(int(open.Fd()))} {
		f, err := openRegular(name, unix.O_RDONLY)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f.Close()
	}
	for _, name := range []string{link, fifo, dir, "/dev/null"} {
		if f, err := openRegular(name, unix.O_RDWR); !errors.Is(err, errNotRegular) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if _, err := openRegular(filepath.Join(dir, "none"), unix.O_RDONLY); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
