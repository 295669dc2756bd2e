package blkdev_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

const mib = 1 << 20

// resolved resolves spec and checks that the rule goes on nodes, and nowhere else.
func resolved(t *testing.T, spec string, nodes ...string) blkdev.Chain {
	t.Helper()
	c, err := blkdev.New("/").Resolve(t.Context(), spec)
	if err != nil {
		t.Fatalf("%v (after %s)", err, c)
	}
	var got []string
	for _, d := range c.Devices {
		got = append(got, d.Node)
	}
	slices.Sort(got)
	slices.Sort(nodes)
	if !slices.Equal(got, nodes) {
		t.Errorf("%s resolves to %v, want %v (%s)", spec, got, nodes, c)
	}
	t.Log(c)
	return c
}

func TestLoop(t *testing.T) {
	lab.Need(t, lab.Newest, lab.Loop, lab.FS("ext4"), lab.Command("mkfs.ext4"))
	for _, tc := range []struct {
		name  string
		flags uint32
		dio   bool
	}{{"buffered", 0, false}, {"direct", unix.LO_FLAGS_DIRECT_IO, true}} {
		t.Run(tc.name, func(t *testing.T) {
			img, disk := image(t, 32*mib)
			node := attach(t, img, tc.flags)
			tool(t, "mkfs.ext4", "-q", node)
			dir := mount(t, node, "ext4", 0, "")
			for _, spec := range []string{node, filepath.Base(node), dir} {
				d := resolved(t, spec, node).Devices[0]
				if d.Kind != blkdev.Loop || d.Backing == nil || d.Backing.File != img || d.SizeBytes != 32*mib {
					t.Errorf("%s: %+v, backing %+v", spec, d, d.Backing)
					continue
				}
				if d.Backing.DirectIO != tc.dio {
					t.Errorf("direct I/O is %v, want %v", d.Backing.DirectIO, tc.dio)
				}
				if len(d.Beneath) != 1 || d.Beneath[0].Node != disk.Node {
					t.Errorf("beneath %s is %v, want %s", node, d.Beneath, disk.Node)
				}
			}
			bind := mount(t, dir+"/lost+found", "", unix.MS_BIND, "")
			if c := resolved(t, bind, node); !strings.Contains(c.String(), "(bind of /lost+found)") {
				t.Errorf("the bind is not shown: %s", c)
			}
			ofMounts(t, node)
			if err := os.Remove(img); err != nil {
				t.Fatal(err)
			}
			d := resolved(t, dir, node).Devices[0]
			if !d.Backing.Deleted || len(d.Beneath) != 1 {
				t.Errorf("after its file was deleted: %+v, beneath %v", d.Backing, d.Beneath)
			}
		})
	}
}

// ofMounts checks that this process's mounts lead to a device.
func ofMounts(t *testing.T, node string) {
	t.Helper()
	for _, pid := range []int{0, os.Getpid()} {
		chains, skipped, err := blkdev.New("/").OfMounts(t.Context(), pid)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(blkdev.Devices(chains), func(d blkdev.Device) bool { return d.Node == node }) {
			t.Errorf("mounts of process %d are on %v, without %s (skipped %v)", pid, chains, node, skipped)
		}
	}
}

func TestPartition(t *testing.T) {
	// udev reads the partition table again when somebody closes the device, and drops
	// partitions that were added without one.
	lab.Need(t, lab.Newest, lab.NoSystemd, lab.Loop, lab.FS("ext4"), lab.Command("mkfs.ext4"))
	img, _ := image(t, 64*mib)
	node := attach(t, img, unix.LO_FLAGS_PARTSCAN)
	partition(t, node, 1, mib, 8*mib)
	part := partition(t, node, 2, 16*mib, 32*mib)
	appears(t, part)
	tool(t, "mkfs.ext4", "-q", part)
	dir := mount(t, part, "ext4", 0, "")
	for _, spec := range []string{part, filepath.Base(part), dir} {
		c := resolved(t, spec, node)
		want := fmt.Sprintf("%s is a partition of %s; the limit is on the whole disk", filepath.Base(part), filepath.Base(node))
		if !slices.Contains(c.Notes, want) {
			t.Errorf("notes %q lack %q", c.Notes, want)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(part, link); err != nil {
		t.Fatal(err)
	}
	resolved(t, link, node)
}

func TestBtrfs(t *testing.T) {
	lab.Need(t, lab.Newest, lab.Loop, lab.FS("btrfs"), lab.Command("mkfs.btrfs"))
	imgA, _ := image(t, 256*mib)
	imgB, _ := image(t, 256*mib)
	a, b := attach(t, imgA, 0), attach(t, imgB, 0)
	tool(t, "mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid1", a, b)
	top := mount(t, a, "btrfs", 0, "device="+b)
	subvolume(t, top, "data")
	sub := mount(t, a, "btrfs", 0, "subvol=data,device="+b)
	file := filepath.Join(sub, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{top, sub, file, filepath.Join(top, "data")} {
		c := resolved(t, spec, a, b)
		if !slices.Contains(c.Notes, "btrfs is on 2 devices; weir sets the whole limit on each") {
			t.Errorf("notes of %s: %q", spec, c.Notes)
		}
	}
	if c := resolved(t, sub, a, b); !strings.Contains(c.String(), "(subvolume /data)") {
		t.Errorf("the subvolume is not shown: %s", c)
	}
}

func TestOverlay(t *testing.T) {
	lab.Need(t, lab.Newest, lab.FS("ext4"), lab.Overlay)
	scratch := lab.Disk(t, lab.FS("ext4"))
	node, disk := scratch.Node, scratch.Dir
	memory := mount(t, "weir", "tmpfs", 0, "size=1m")
	for _, dir := range []string{disk + "/upper, one", disk + "/work", disk + "/lower:1", memory + "/upper", memory + "/work"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	options := `lowerdir=` + disk + `/lower\:1,upperdir=` + disk + `/upper\, one,workdir=` + disk + "/work"
	resolved(t, mount(t, "overlay", "overlay", 0, options), node)

	options = `lowerdir=` + disk + `/lower\:1,upperdir=` + memory + "/upper,workdir=" + memory + "/work"
	dir := mount(t, "overlay", "overlay", 0, options)
	c, err := blkdev.New("/").Resolve(t.Context(), dir)
	var none *blkdev.NoBlockDeviceError
	if !errors.As(err, &none) || none.FSType != "overlay" || !strings.Contains(none.Reason, "tmpfs keeps its files in memory") {
		t.Errorf("overlay on tmpfs: %s, %v", c, err)
	}

	options = `lowerdir=` + disk + `/lower\:1:` + disk + "/work"
	resolved(t, mount(t, "overlay", "overlay", 0, options), node)
}

// A path as another process sees it is resolved on that process's mounts.
func TestOtherRoot(t *testing.T) {
	lab.Need(t, lab.Newest, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	resolved(t, fmt.Sprintf("/proc/%d/root%s", os.Getpid(), disk.Dir), disk.Node)
}

// Each file system of the lab is found by its mount, device node, name and number.
func TestDisk(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(kind, func(t *testing.T) {
			lab.Need(t, lab.Newest, lab.FS(kind))
			disk := lab.Disk(t, lab.FS(kind))
			for _, spec := range []string{disk.Dir, disk.Node, filepath.Base(disk.Node)} {
				resolved(t, spec, disk.Node)
			}
			c := resolved(t, disk.Dir, disk.Node)
			if m, ok := c.FileSystem(); !ok || m.FSType != kind || m.Point != disk.Dir {
				t.Errorf("file system %+v, want %s on %s", m, kind, disk.Dir)
			}
			resolved(t, c.Devices[0].Number.String(), disk.Node)
			ofMounts(t, disk.Node)
		})
	}
}

// An LVM volume is found by each of its names.
func TestLVM(t *testing.T) {
	lab.Need(t, lab.Newest, lab.LVM, lab.Command("mkfs.ext4"))
	disk := lab.RawDisk(t)
	tool(t, "lvm", "vgcreate", "-qq", "-y", "weir-blk", disk.Node)
	t.Cleanup(func() { tool(t, "lvm", "vgremove", "-qq", "-f", "-y", "weir-blk") })
	tool(t, "lvm", "lvcreate", "-qq", "-y", "-Zn", "-Wn", "-L", "64m", "-n", "vol", "weir-blk")
	node := "/dev/mapper/weir--blk-vol"
	tool(t, "mkfs.ext4", "-q", node)
	for _, spec := range []string{node, "weir--blk-vol", "weir-blk/vol", mount(t, node, "ext4", 0, "")} {
		d := resolved(t, spec, node).Devices[0]
		if d.Kind != blkdev.DM || d.Flavor != "lvm" || len(d.Beneath) != 1 || d.Beneath[0].Node != disk.Node {
			t.Errorf("%s: %s, want LVM on %s", spec, d, disk.Node)
		}
	}
}
