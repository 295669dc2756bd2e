package peek

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// A file of the kernel's can look regular, and wait.
func TestRegular(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.WriteFile(at("file"), []byte("xyz"), 0o600), os.Symlink("/proc/kmsg", at("kmsg")), os.Symlink("/dev/zero", at("zero")), os.WriteFile(at("holes"), nil, 0o600), os.Truncate(at("holes"), 1<<40)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"file": "", "kmsg": "", "zero": "not a regular file", "holes": "longer than 1000 bytes", "none": "no such file"} {
		began := time.Now()
		text, err := Regular(at(name), 1000)
		if name != "kmsg" && (want == "" && (err != nil || string(text) != "xyz") || want != "" && (err == nil || !strings.Contains(err.Error(), want))) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
	if text, err := Regular(at("file"), 3); err != nil || len(text) != 3 {
		t.Errorf("of as many bytes as there are: %q, %v", text, err)
	}
}
