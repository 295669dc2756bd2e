package pagecache

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Of a file that is larger than anybody's memory the pages are not counted one by one.
func TestAHugeFileIsNotCounted(t *testing.T) {
	fd, err := unix.MemfdCreate("huge", unix.MFD_CLOEXEC) // tmpfs takes files of any size
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "huge")
	defer f.Close()
	if err := f.Truncate(coreMost + 1); err != nil {
		t.Fatal(err)
	}
	if r, err := countCore(f, 0, 0); !errors.Is(err, errHuge) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := countCore(f, 0, coreStep); err != nil {
		t.Error(err)
	}
}
