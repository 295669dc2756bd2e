package volume_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// A mount with a device of its own is held like a volume, and delete restores the device's
// settings.
func TestAdopt(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Once, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	bdi := "/sys/class/bdi/" + disk.Number.String()
	before := read(t, bdi+"/max_ratio") + read(t, bdi+"/strict_limit", "")
	rules := func() string {
		if e.Cgroups.Blkio == "" {
			return ""
		}
		return read(t, filepath.Join(e.Cgroups.Blkio, "blkio.throttle.write_bps_device"))
	}
	weirSays(t, "volume", "adopt", disk.Dir, "--write", "5MB/s")
	t.Cleanup(func() { _, _ = try("volume", "delete", disk.Dir) }) // if it fails half way
	v := find(t, disk.Dir)
	if !v.Adopted || !v.Up || v.Number != disk.Number {
		t.Errorf("adopted: %+v", v)
	}
	if e.Cgroups.Blkio != "" && !strings.Contains(rules(), disk.Number.String()+" 5000000") {
		t.Errorf("its rule: %q", rules())
	}
	if strict := read(t, bdi+"/strict_limit", "1"); strings.TrimSpace(strict) != "1" {
		t.Errorf("its bound: %q", strict)
	}
	refused(t, "it exists already", "volume", "adopt", disk.Dir, "--write", "5MB/s")
	refused(t, "is an adopted mount", "volume", "down", v.Name)
	refused(t, "did not make its device", "volume", "resize", v.Name, "--size", "1TiB")
	weirSays(t, "volume", "set", v.Name, "--write", "7MB/s")
	if e.Cgroups.Blkio != "" && !strings.Contains(rules(), disk.Number.String()+" 7000000") {
		t.Errorf("its rule, set again: %q", rules())
	}
	weirSays(t, "volume", "delete", v.Name)
	if strings.Contains(rules(), disk.Number.String()+" ") {
		t.Errorf("left: %q", rules())
	}
	if after := read(t, bdi+"/max_ratio") + read(t, bdi+"/strict_limit", ""); after != before {
		t.Errorf("the device's bounds were %q, and are %q", before, after)
	}
}

// A mount that shares its disk with another one cannot be adopted.
func TestAPartitionBesideAnotherIsNoVolume(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Guest, lab.Partitions, lab.Command("sfdisk"), lab.Command("mkfs.ext4"))
	disk := lab.RawDisk(t)
	lab.Lock(t, disk)
	cmd := exec.Command("sfdisk", "-q", disk.Node)
	cmd.Stdin = strings.NewReader("label: gpt\nstart=2048, size=40000\nsize=40000\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sfdisk: %v\n%s", err, out)
	}
	one, two := mountPart(t, disk, 1), mountPart(t, disk, 2)
	refused(t, "also mounted at "+one, "volume", "adopt", two, "--write", "5MB/s")
	refused(t, "also mounted at "+two, "volume", "adopt", one, "--write", "5MB/s")
	if err := unix.Unmount(one, 0); err != nil {
		t.Fatal(err)
	}
	weirSays(t, "volume", "adopt", two, "--write", "5MB/s")
	if v := find(t, two); v.Number != disk.Number {
		t.Errorf("its device: %+v", v)
	}
	weirSays(t, "volume", "delete", two)
}

// mountPart makes a file system on a partition, and mounts it.
func mountPart(t *testing.T, disk *lab.TestDisk, n int) string {
	t.Helper()
	node := lab.PartitionNode(t, disk, n)
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", node).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v\n%s", err, out)
	}
	dir := t.TempDir()
	if err := unix.Mount(node, dir, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // the test may have unmounted it
	return dir
}
