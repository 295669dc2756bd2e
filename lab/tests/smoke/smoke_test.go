package smoke

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
	"github.com/weir-io/weir/lab/internal/mkfs"
)

func TestModeIsAsPromised(t *testing.T) {
	e := lab.Need(t, lab.Guest)
	if e.Cgroups.Mode != e.Promised {
		t.Errorf("mode %s, promised %s", e.Cgroups.Mode, e.Promised)
	}
	wantV2 := e.Promised == environ.V2 || e.Promised == environ.HybridV2 || e.Promised == environ.Split
	if e.Cgroups.IOInV2 != wantV2 || (e.Cgroups.Blkio != "") == wantV2 {
		t.Errorf("mode %s: io in cgroup2 %v, blkio at %q", e.Promised, e.Cgroups.IOInV2, e.Cgroups.Blkio)
	}
}

func TestThrottleFilesV1(t *testing.T) {
	e := lab.Need(t, lab.V1)
	group := makeGroup(t, e.Cgroups.Blkio)
	if _, err := os.Stat(filepath.Join(group, "blkio.throttle.write_bps_device")); err != nil {
		t.Error(err)
	}
}

func TestThrottleFilesV2(t *testing.T) {
	e := lab.Need(t, lab.V2, lab.NoSystemd) // systemd enables controllers on demand
	group := makeGroup(t, e.Cgroups.Unified)
	if _, err := os.Stat(filepath.Join(group, "io.max")); err != nil {
		t.Error(err)
	}
}

func TestMemoryIsBesideIO(t *testing.T) {
	e := lab.Need(t, lab.V2, lab.Memory, lab.NoSystemd)
	group := makeGroup(t, e.Cgroups.Unified)
	if _, err := os.Stat(filepath.Join(group, "memory.max")); err != nil {
		t.Error(err)
	}
}

// A kernel with the io and memory controllers has cgroup writeback. weir relies on that
// where it cannot read the kernel's configuration. (mm/backing-dev.c builds the function
// only with it.)
func TestWritebackComesWithBothControllers(t *testing.T) {
	lab.Need(t, lab.V2, lab.Memory, lab.Guest)
	symbols, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(symbols), " wb_get_create\n") {
		t.Error("the kernel has io and memory on one hierarchy, and no cgroup writeback")
	}
}

func makeGroup(t *testing.T, parent string) string {
	t.Helper()
	dir := filepath.Join(parent, "weir-lab-"+filepath.Base(t.TempDir())+"-"+t.Name())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestDirectWriteReachesTheDevice(t *testing.T) {
	for _, kind := range mkfs.Kinds() {
		t.Run(kind, func(t *testing.T) {
			lab.Need(t, lab.FS(kind))
			t.Parallel()
			disk := lab.Disk(t, lab.FS(kind))
			_, before := lab.DeviceBytes(t, disk.Number)
			const size = 1 << 20
			if err := writeDirect(filepath.Join(disk.Dir, "file"), size); err != nil {
				t.Fatal(err)
			}
			if _, after := lab.DeviceBytes(t, disk.Number); after-before < size {
				t.Errorf("wrote %d bytes, the device counted %d", size, after-before)
			}
		})
	}
}

func writeDirect(path string, size int) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|unix.O_DIRECT, 0o600)
	if err != nil {
		return err
	}
	// A mapping begins on a page, as O_DIRECT wants it.
	buf, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = f.Write(buf)
	return errors.Join(err, f.Close(), unix.Munmap(buf))
}

// TestDiskIsEmptyAgain takes more disks of a kind than there are, one after the
// other, and dirties each.
func TestDiskIsEmptyAgain(t *testing.T) {
	lab.Need(t, lab.FS("ext4"))
	for range 5 {
		t.Run("round", func(t *testing.T) {
			disk := lab.Disk(t, lab.FS("ext4"))
			file := filepath.Join(disk.Dir, "file")
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("file of the last round: %v", err)
			}
			if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPartition(t *testing.T) {
	lab.Need(t, lab.Once, lab.Guest, lab.Partitions) // a host's kernel may read no partition tables
	for range 2 {
		disk := lab.RawDisk(t)
		node := lab.Partition(t, disk)
		if node == disk.Node {
			t.Errorf("the partition of %s is %s", disk.Node, node)
		}
		f, err := os.OpenFile(node, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.Write(make([]byte, 4096))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestLogicalVolume(t *testing.T) {
	lab.Need(t, lab.Newest, lab.Guest, lab.LVM)
	disk := lab.RawDisk(t)
	command(t, "lvm", "pvcreate", "-qq", "-y", disk.Node)
	command(t, "lvm", "vgcreate", "-qq", "smoke", disk.Node)
	t.Cleanup(func() { command(t, "lvm", "vgremove", "-qq", "-y", "smoke") })
	command(t, "lvm", "lvcreate", "-qq", "-y", "-Zn", "-Wn", "-L", "512M", "-n", "one", "smoke")
	if _, err := os.Stat("/dev/smoke/one"); err != nil {
		t.Error(err)
	}
	command(t, "dd", "if=/dev/zero", "of=/dev/smoke/one", "bs=4096", "count=1", "oflag=direct", "status=none")
}

func TestOverlayMounts(t *testing.T) {
	lab.Need(t, lab.Guest)
	dir := t.TempDir()
	for _, name := range []string{"low", "up", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	merged := filepath.Join(dir, "merged")
	options := "lowerdir=" + dir + "/low,upperdir=" + dir + "/up,workdir=" + dir + "/work"
	if err := unix.Mount("overlay", merged, "overlay", 0, options); err != nil {
		t.Fatal(err)
	}
	if err := unix.Unmount(merged, 0); err != nil {
		t.Error(err)
	}
}

func TestWeirIsThere(t *testing.T) {
	lab.Need(t)
	command(t, "weir", "--help")
}

func command(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v\n%s", name, args, err, out)
	}
}
