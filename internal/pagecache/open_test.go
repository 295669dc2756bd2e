package pagecache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Nothing that an owner of a directory can put there has weir wait.
func TestOpenWaitsForNobody(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("file"), []byte("x"), 0o600), unix.Mkfifo(at("fifo"), 0o600), os.Symlink("/dev/zero", at("device")), os.Symlink("file", at("link"))); err != nil {
		t.Fatal(err)
	}
	leased, err := os.OpenFile(at("leased"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer leased.Close()
	cases := map[string]error{"file": nil, "link": nil, "fifo": ErrNotRegular, "device": ErrNotRegular, ".": ErrNotRegular, "none": os.ErrNotExist, "leased": unix.EAGAIN}
	if _, err := unix.FcntlInt(leased.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Logf("this file system has no leases: %v", err)
		cases["leased"] = nil
	}
	for name, want := range cases {
		began := time.Now()
		f, err := Open(at(name))
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

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
