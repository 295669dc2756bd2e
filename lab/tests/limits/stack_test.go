package limits_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// held measures a direct writer below dir at 8 MB/s, and that the rule is on device.
func held(t *testing.T, dir, device string) {
	t.Helper()
	rate := lab.Scaled(lab.Here(t), 8e6)
	limits := []string{"--write", fmt.Sprint(rate), "--on", dir}
	job := load.Job{Path: load.Direct, File: filepath.Join(dir, "f"), Block: blockFor(rate), Size: 16 << 20, Warm: warm, For: window}
	lab.Ratio(t, "direct write", float64(rate), lab.Direct, func() float64 { return limited(t, limits, job).BytesPerSec() })
	var doc struct {
		Devices []struct{ Device string }
	}
	if err := json.Unmarshal(weir(t, append(append([]string{"run", "--quiet", "--json"}, limits...), "--", "true")...), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Devices) != 1 || doc.Devices[0].Device != device {
		t.Errorf("the rule is on %v, want %s", doc.Devices, device)
	}
}

func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	began := time.Now()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	t.Logf("%.1f s: %s", time.Since(began).Seconds(), name)
}

func mount(t *testing.T, source, fs, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount(source, dir, fs, 0, options); err != nil {
		t.Fatalf("mount %s: %v", source, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// A partition's rule goes to its disk, and holds there.
func TestPartition(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.Guest, lab.Partitions, lab.Command("sfdisk"), lab.Command("mkfs.ext4"))
	disk := lab.RawDisk(t)
	lab.Lock(t, disk)
	began := time.Now()
	cmd := exec.Command("sfdisk", "-q", disk.Node)
	cmd.Stdin = stringReader("label: gpt\nstart=2048, size=200000\nsize=200000\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("sfdisk: %v\n%s", err, out)
	}
	t.Logf("%.1f s: sfdisk", time.Since(began).Seconds())
	part := lab.PartitionNode(t, disk, 2)
	tool(t, "mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", part)
	t.Parallel() // not before: sfdisk syncs all disks, and so waits for what limits hold back on others
	held(t, mount(t, part, "ext4", ""), disk.Node)
}

// A rule goes to an LVM volume itself, and holds there.
func TestLVM(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV1, lab.LVM, lab.Command("mkfs.ext4"))
	t.Parallel()
	node := volume(t, "weirvg", lab.RawDisk(t).Node)
	held(t, mount(t, node, "ext4", ""), node)
}

// volume makes an LVM volume with ext4 on a disk, in a group of volumes of its own.
func volume(t *testing.T, group, disk string) (node string) {
	t.Helper()
	tool(t, "lvm", "vgcreate", "-qq", "-y", group, disk)
	t.Cleanup(func() { tool(t, "lvm", "vgremove", "-qq", "-f", "-y", group) })
	tool(t, "lvm", "lvcreate", "-qq", "-y", "-Zn", "-Wn", "-L", "100m", "-n", "vol", group)
	node = "/dev/mapper/" + group + "-vol"
	tool(t, "mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", node)
	return node
}

// With limits on a volume and on its disk, the kernel charges a direct write to both, and it counts once:
// without BPF weir says how much went past them beside.
func TestAVolumeAndItsDisk(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.OnceV1, lab.LVM, lab.Command("mkfs.ext4"))
	t.Parallel()
	disk := lab.RawDisk(t).Node
	dir := mount(t, volume(t, "weirboth", disk), "ext4", "")
	rate := fmt.Sprint(lab.Scaled(e, 8e6))
	const block, count = 16384, 500
	script := fmt.Sprintf("cd %s && dd if=/dev/zero iflag=fullblock of=direct bs=%d count=%d oflag=direct && dd if=/dev/zero iflag=fullblock of=buffered bs=%[2]d count=%[3]d", dir, block, count)
	var doc struct {
		Escaped uint64 `json:"escaped_bytes"`
		Devices []struct {
			Charged struct {
				Written uint64 `json:"written_bytes"`
			}
		}
	}
	out := weir(t, "run", "--quiet", "--json", "--hold", "kernel", "--write", rate, "--on", dir, "--write", rate, "--on", disk, "--", "sh", "-c", script)
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Devices) != 2 {
		t.Fatalf("weir run --json: %v: %s", err, out)
	}
	near := func(bytes uint64) bool { return bytes > block*count*9/10 && bytes < block*count*11/10 }
	for _, d := range doc.Devices {
		if !near(d.Charged.Written) {
			t.Errorf("%d bytes charged to one of both, want the %d that are direct", d.Charged.Written, block*count)
		}
	}
	if !near(doc.Escaped) {
		t.Errorf("%d bytes past the limits, want the %d that are buffered", doc.Escaped, block*count)
	}
}

// A rule goes to a loop device itself, and holds there.
func TestLoop(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV1, lab.FS("ext4"), lab.Loop, lab.Command("mkfs.ext4"), lab.Command("losetup"))
	t.Parallel()
	below := lab.Disk(t, lab.FS("ext4"))
	image := filepath.Join(below.Dir, "image")
	filled(t, image, 96<<20)
	out, err := exec.Command("losetup", "--find", "--show", image).Output() // in one step: other tests take some too
	if err != nil {
		t.Fatal(err)
	}
	loop := trim(out)
	t.Cleanup(func() { tool(t, "losetup", "-d", loop) })
	tool(t, "mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", loop)
	held(t, mount(t, loop, "ext4", ""), loop)
}

// btrfs's device numbers are anonymous; the rule goes to the disk below.
func TestBtrfsSubvolume(t *testing.T) {
	// (Its checksums and copies are more than an emulated processor can do.)
	lab.Need(t, lab.Root, lab.OnceV2, lab.Rates, lab.FS("btrfs"), lab.Command("btrfs"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("btrfs"))
	sub := filepath.Join(disk.Dir, "sub")
	tool(t, "btrfs", "-q", "subvolume", "create", sub)
	held(t, mount(t, disk.Node, "btrfs", "subvol=/sub"), disk.Node)
}

// An overlay's writes go to its upper directory's disk.
func TestOverlay(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.FS("ext4"), lab.Overlay)
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	var dirs []string
	for _, name := range []string{"lower", "upper", "work"} {
		dir := filepath.Join(disk.Dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	held(t, mount(t, "overlay", "overlay", "lowerdir="+dirs[0]+",upperdir="+dirs[1]+",workdir="+dirs[2]), disk.Node)
}
