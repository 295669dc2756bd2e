package systemd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// What is in the place of a unit's file, or behind a link there, ends no verb and is not waited for:
// systemd could read nothing there either.
func TestFilesOfOtherKinds(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const line = "IOReadBandwidthMax=/dev/sda 5M\n"
	if err := errors.Join(unix.Mkfifo(at("fifo"), 0o600), os.Mkdir(at("dir"), 0o700), os.Symlink("/dev/zero", at("zero")), os.Symlink("/dev/null", at("masked")),
		os.Symlink("loop", at("loop")), os.Symlink("none", at("none")), os.WriteFile(at("holes"), nil, 0o600), os.Truncate(at("holes"), 1<<40),
		os.WriteFile(at("long"), []byte("# "+strings.Repeat("x", 2<<20)+"\n"+line), 0o600), os.WriteFile(at("file"), []byte(line), 0o600), os.Symlink("file", at("link"))); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"fifo": false, "dir": false, "zero": false, "masked": false, "loop": false, "none": false, "holes": false, "long": true, "file": true, "link": true} {
		began := time.Now()
		if sets, err := setsRate(at(name), limit.RBPS); err != nil || sets != want {
			t.Errorf("%s: %t, %v", name, sets, err)
		}
		if changed, err := (DropIn{limit.RBPS, at(name)}).forget([]string{"/dev/none"}); err != nil || changed {
			t.Errorf("%s: %t, %v", name, changed, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %s", name, took)
		}
	}
}

// A name that systemd would read otherwise than it writes it keeps no limit over a boot: udev calls a
// device "my data" dm-name-my\x20data.
func TestLastingPathIsReadBack(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	const block = "sys/devices/virtual/block/dm-0"
	if err := errors.Join(os.MkdirAll(at(byID), 0o755), os.MkdirAll(at(block+"/dm"), 0o755), os.MkdirAll(at(block+"/slaves"), 0o755), os.MkdirAll(at("sys/class/block"), 0o755),
		os.MkdirAll(at("sys/dev/block"), 0o755), os.MkdirAll(at("proc/1"), 0o755), os.WriteFile(at("proc/1/mountinfo"), nil, 0o644),
		os.WriteFile(at(block+"/dev"), []byte("253:0\n"), 0o644), os.WriteFile(at(block+"/size"), []byte("2048\n"), 0o644), os.WriteFile(at(block+"/dm/name"), []byte("my data\n"), 0o644),
		os.Symlink("../../devices/virtual/block/dm-0", at("sys/class/block/dm-0")), os.Symlink("../../devices/virtual/block/dm-0", at("sys/dev/block/253:0")),
		os.Symlink("../../dm-0", at(byID+`/dm-name-my\x20data`))); err != nil {
		t.Fatal(err)
	}
	dev := blkdev.Number{Major: 253}
	var none *NoLastingPathError
	if got, err := LastingPath(t.Context(), root, dev); !errors.As(err, &none) {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Symlink("../../dm-0", at(byID+"/dm-uuid-LVM-x")); err != nil {
		t.Fatal(err)
	}
	if got, err := LastingPath(t.Context(), root, dev); err != nil || got != byID+"/dm-uuid-LVM-x" {
		t.Errorf("%q, %v", got, err)
	}
}
