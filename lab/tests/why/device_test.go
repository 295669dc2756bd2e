package why_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// limited makes a group with the io controller and a limit of 2 MB/s on a disk.
func limited(t *testing.T, name string, disk *lab.TestDisk) group {
	t.Helper()
	var g group
	if lab.Here(t).Cgroups.IOInV2 {
		g = newGroup(t, nil, name, "io", "memory")
	} else {
		g = newGroup(t, nil, name)
	}
	g.limit(t, disk, "2000000")
	return g
}

// The limit is on another disk than the files.
func TestWhyRuleElsewhere(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.Rates, lab.FS("ext4"))
	t.Parallel()
	disk, other := lab.Disk(t, lab.FS("ext4")), lab.RawDisk(t)
	g := limited(t, "why-elsewhere", other)
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).want(t, "rule-elsewhere", "breaks").paste(t, "weir set")
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).gone(t, "rule-elsewhere")
	g.proves(t, disk.Dir, "direct", "held")
	explain(t, "cgroup:"+g.path, "--on", other.Node).want(t, "rule-elsewhere", "breaks") // now it is the other way round
}

// A limit on the device below a loop device does not hold its I/O, unless the loop device
// does direct I/O.
func TestWhyLoop(t *testing.T) {
	lab.Need(t, lab.Root, lab.Rates, lab.Long, lab.Guest, lab.Loop, lab.FS("ext4"), lab.Command("losetup"), lab.Command("mkfs.ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	image := filepath.Join(disk.Dir, "image")
	if err := os.WriteFile(image, make([]byte, 48<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	loop := tool(t, "losetup", "--find", "--show", image)
	t.Cleanup(func() { tool(t, "losetup", "-d", loop) })
	tool(t, "mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", loop)
	dir := t.TempDir()
	if err := unix.Mount(loop, dir, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
	g := limited(t, "why-loop", disk)
	f := explain(t, "cgroup:"+g.path, "--on", dir).want(t, "loop-buffered", "breaks")
	above := &lab.TestDisk{Number: number(t, loop)}
	lab.Free(t, "a direct write, at a limit of 2 MB/s below the loop device", 2*2e6, func() float64 {
		return rate(t, g, above, "direct", 1, filepath.Join(dir, "f"))
	})
	f.paste(t, "weir set")
	r := explain(t, "cgroup:"+g.path, "--on", dir)
	r.gone(t, "loop-buffered")
	if r.held("direct", false) != "yes" {
		t.Errorf("a direct write is not held: %v", r.codes())
	}
}

func number(t *testing.T, node string) blkdev.Number {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(node, &st); err != nil {
		t.Fatal(err)
	}
	return blkdev.Number{Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}
}

// A limit on a disk also holds I/O to an LVM volume on it.
func TestWhyLVM(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV1, lab.LVM, lab.Command("mkfs.ext4"))
	disk := lab.RawDisk(t)
	tool(t, "lvm", "vgcreate", "-qq", "-y", "whyvg", disk.Node)
	t.Cleanup(func() { tool(t, "lvm", "vgremove", "-qq", "-f", "-y", "whyvg") })
	tool(t, "lvm", "lvcreate", "-qq", "-y", "-Zn", "-Wn", "-L", "100m", "-n", "vol", "whyvg")
	node := "/dev/mapper/whyvg-vol"
	tool(t, "mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", node)
	dir := t.TempDir()
	if err := unix.Mount(node, dir, "ext4", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
	unix.Sync() // what mkfs wrote must not come to the disk while a rate is measured
	g := limited(t, "why-lvm", disk)
	f := explain(t, "cgroup:"+g.path, "--on", dir).want(t, "rule-beneath", "note")
	lab.Ratio(t, "direct write, limit below LVM", 2e6, lab.Band{Low: 0.75, High: 1.1}, func() float64 {
		defer logCharged(t, g, disk)
		return rate(t, g, disk, "direct", 2, filepath.Join(dir, "f"))
	})
	f.paste(t, "weir set")
	explain(t, "cgroup:"+g.path, "--on", dir).gone(t, "rule-beneath")
}

// A limit on a partition is a limit on its disk.
func TestWhyPartition(t *testing.T) {
	lab.Need(t, lab.Root, lab.Long, lab.Guest, lab.Partitions)
	explain(t, lab.Partition(t, lab.RawDisk(t)), "--write", "2MB/s").want(t, "partition", "note")
}

// Limits that are too small for a slice of 100 ms are inexact.
func TestWhySmallLimits(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	explain(t, disk.Dir, "--write-iops", "3").want(t, "limit-below-slice", "hurts")
	explain(t, disk.Dir, "--write", "20kB/s").want(t, "limit-below-slice", "hurts")
	r := explain(t, disk.Dir, "--write", "1GB/s", "--write-iops", "100")
	r.gone(t, "limit-below-slice")
	r.gone(t, "large-requests")
}

// Swapping is I/O on the device too.
func TestWhySwap(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.Guest, lab.Command("mkswap"), lab.Command("swapon"), lab.Command("swapoff"))
	t.Parallel()
	disk := lab.RawDisk(t)
	tool(t, "mkswap", disk.Node)
	tool(t, "swapon", disk.Node)
	off := func() { tool(t, "swapoff", disk.Node) }
	explain(t, disk.Node, "--write", "2MB/s").want(t, "swap", "note")
	off()
	explain(t, disk.Node, "--write", "2MB/s").gone(t, "swap")
}

// io.cost works beside the limits.
func TestWhyIOCost(t *testing.T) {
	cgroups := lab.Need(t, lab.Root, lab.V2, lab.NoSystemd, lab.Lane("qemu")).Cgroups
	disk := lab.RawDisk(t)
	root := group{dir: cgroups.Unified}
	root.set(t, "io.cost.qos", disk.Number.String()+" enable=1")
	explain(t, disk.Node, "--write", "2MB/s").want(t, "io-cost", "note").paste(t, "enable=0")
	explain(t, disk.Node, "--write", "2MB/s").gone(t, "io-cost")
}
