package systemd

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// systemd sets a limit that names a volume on the disk below. So a volume has no lasting path, and a volume's name
// is a disk's only if there is no other, and systemd ends there whatever its version.
func TestLastingPathsOfVolumesAndTheirDisks(t *testing.T) {
	root := sysfs(t)
	at := func(name string) string { return filepath.Join(root, byID, name) }
	err := os.MkdirAll(at(""), 0o755)
	link := func(name, target string) { err = errors.Join(err, os.Symlink("../../"+target, at(name))) }
	expect := func(dev blkdev.Number, want string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		got, err := LastingPath(t.Context(), root, dev)
		var none *NoLastingPathError
		if got != want || (want == "") != errors.As(err, &none) {
			t.Errorf("%s: %q, %v; want %q", dev, got, err, want)
		}
	}
	sda, crypt, volume, two := blkdev.Number{Major: 8}, blkdev.Number{Major: 254}, blkdev.Number{Major: 254, Minor: 1}, blkdev.Number{Major: 254, Minor: 2}
	expect(sda, "/")
	expect(volume, "") // though /data is on it
	link("dm-name-volume0", "dm-0")
	link("dm-name-volume1", "dm-1")
	link("dm-name-volume2", "dm-2")
	expect(sda, "/")
	expect(crypt, "")
	expect(volume, "")
	expect(two, byID+"/dm-name-volume2") // on two disks: systemd ends there
	err = os.WriteFile(filepath.Join(root, "proc/1/mountinfo"), nil, 0o644)
	expect(sda, byID+"/dm-name-volume0") // and not volume1, from which a version ends at volume0
	link("wwn-1-part1", "sda1")
	expect(sda, byID+"/wwn-1-part1")
}
