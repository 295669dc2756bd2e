package blkdev

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// withMount is a root on vda2 and one more mount.
func withMount(line string) func(tree) {
	return func(tr tree) { vda(tr); tr.mounts("1", rootOnVda2, line) }
}

func TestNoBlockDevice(t *testing.T) {
	for _, tc := range []struct {
		name, mount, fstype, reason string
	}{
		{"tmpfs", "30 20 0:9 / /x rw - tmpfs tmpfs rw", "tmpfs", "tmpfs keeps its files in memory"},
		{"ramfs", "30 20 0:9 / /x rw - ramfs none rw", "ramfs", "in memory"},
		{"proc", "30 20 0:9 / /x rw - proc proc rw", "proc", "a view into the kernel"},
		{"nfs", "30 20 0:9 / /x rw - nfs4 srv:/export rw", "nfs4", "another machine (srv:/export)"},
		{"cifs", "30 20 0:9 / /x rw - cifs //srv/share rw", "cifs", "another machine (//srv/share)"},
		{"ceph", "30 20 0:9 / /x rw - ceph mon:/ rw", "ceph", "another machine"},
		{"9p", "30 20 0:9 / /x rw - 9p share rw", "9p", "set the limit on the host"},
		{"virtiofs", "30 20 0:9 / /x rw - virtiofs share rw", "virtiofs", "set the limit on the host"},
		{"zfs", "30 20 0:9 / /x rw - zfs tank/a rw", "zfs", "zfs does the I/O of tank/a in its own threads"},
		{"bcachefs", "30 20 0:9 / /x rw - bcachefs /dev/sda:/dev/sdb rw", "bcachefs", "name the member you mean: /dev/sda, /dev/sdb"},
		{"fuse", "30 20 0:9 / /x rw - fuse.mergerfs a:b rw", "fuse.mergerfs", "set the limit on that process"},
		{"unknown", "30 20 0:9 / /x rw - newfs none rw", "newfs", `its source "none" is not a device`},
		{"unknown with a missing source", "30 20 0:9 / /x rw - newfs /dev/nix rw", "newfs", "its source is no block device here"},
		{"btrfs whose source is gone", "30 20 0:9 / /x rw - btrfs /dev/nix rw", "btrfs", "its source is no block device here"},
		{"overlay without a directory", "30 20 0:9 / /x rw - overlay overlay rw", "overlay", "mount options name no directory"},
		{"overlay with a missing upper", "30 20 0:9 / /x rw - overlay overlay rw,upperdir=/gone/up", "overlay", "weir cannot reach the upper directory of the overlay, /gone/up"},
		{"overlay with a relative upper", "30 20 0:9 / /x rw - overlay overlay rw,upperdir=abc/diff", "overlay", "is a relative path"},
		{"overlay on proc", "30 20 0:9 / /x rw - overlay overlay rw,upperdir=/proc/1", "overlay", "ext4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newTree(t)
			withMount(tc.mount)(tr)
			if tc.name == "overlay on proc" {
				tr.mounts("1", rootOnVda2, tc.mount, "31 20 0:3 / /proc rw - proc proc rw")
				tc.reason = "the upper directory of the overlay is /proc/1, and proc has no files"
			}
			c, err := tr.fs().Resolve(t.Context(), "/x")
			var none *NoBlockDeviceError
			if !errors.As(err, &none) {
				t.Fatalf("error %v (chain %s), want a NoBlockDeviceError", err, c)
			}
			if none.Path != "/x" || none.FSType != tc.fstype || !strings.Contains(none.Reason, tc.reason) {
				t.Errorf("error %+v, want %s on /x: %s", none, tc.fstype, tc.reason)
			}
			if !strings.HasPrefix(err.Error(), "resolve /x: no block device beneath: ") || len(c.Devices) != 0 {
				t.Errorf("message %q, devices %v", err, c.Devices)
			}
			if !strings.HasPrefix(c.String(), "/x → mount /x") {
				t.Errorf("the chain is lost: %s", c)
			}
		})
	}
}

func TestNotFound(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(tree)
		spec  string
		want  string
	}{
		{"number", vda, "8:0", "resolve 8:0: no such block device (looked in /sys/dev/block); there are vda, vda1, vda2"},
		{"name", vda, "sdq", "resolve sdq: no such block device (looked in /sys/class/block, /dev/mapper); there are vda, vda1, vda2"},
		{"name that is close", vda, "vdb2", "resolve vdb2: no such block device (looked in /sys/class/block, /dev/mapper); close to it: vda2"},
		{"dm name that is close", lvm, "vg0-roott", "close to it: vg0-root (dm-0)"},
		{"node", vda, "/dev/vdb", "resolve /dev/vdb: no such block device (looked in /dev, /sys/class/block); close to it: vda"},
		{"uuid", vda, "UUID=aa-bc", "resolve UUID=aa-bc: no such block device (looked in /dev/disk/by-uuid); close to it: aa-bb"},
		{"path", vda, "/srv/nix", "resolve /srv/nix: no such file or directory; of it, /srv exists"},
		{"anonymous number", vda, "0:99", "resolve 0:99: major number 0 is for file systems without a device, and no mount here has this number"},
		{"mounted from a device that is gone", withMount("30 20 8:99 / /x rw - ext4 /dev/sdz rw"), "/x",
			"resolve /x: /x is mounted from /dev/sdz (8:99), and that block device is gone (looked in /sys/dev/block)"},
		{"link to a device that is gone", func(tr tree) { vda(tr); tr.remove("sys/devices") }, "254:1", "254:1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newTree(t)
			tr.dir("srv")
			tc.build(tr)
			_, err := tr.fs().Resolve(t.Context(), tc.spec)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error\n got %v\nwant %s", err, tc.want)
			}
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v is not fs.ErrNotExist", err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(tree)
		spec  string
		want  string
	}{
		{"empty", vda, "", `resolve "": empty; a device is spelled /dev/sda, sda, 8:0, UUID=…, or as a path on it`},
		{"half a number", vda, "8:", "not a device number"},
		{"three numbers", vda, "8:0:1", "not a device number"},
		{"huge number", vda, "8:99999999999", "not a device number"},
		{"zero byte", vda, "sd\x00a", "holds a zero byte"},
		{"loop of links", func(tr tree) { vda(tr); tr.link("a", "b"); tr.link("b", "a") }, "/a", "too many levels of symbolic links"},
		{"partition of a partition", func(tr tree) {
			vda(tr)
			tr.part("devices/pci0000:00/block/vda/vda2", "vda2p1", "254:9")
		}, "vda2p1", "vda2 is a partition as well"},
		{"number that is none", func(tr tree) { vda(tr); tr.file("sys/devices/pci0000:00/block/vda/dev", "nix") }, "vda", `not MAJOR:MINOR`},
		{"size that is none", func(tr tree) { vda(tr); tr.file("sys/devices/pci0000:00/block/vda/size", "-1") }, "vda", "is not a number of sectors"},
		{"size that overflows", func(tr tree) { vda(tr); tr.file("sys/devices/pci0000:00/block/vda/size", "9223372036854775807") }, "vda", "is not a number of sectors"},
		{"sysfs lacks an entry", func(tr tree) { vda(tr); tr.remove("sys/devices/pci0000:00/block/vda/size") }, "254:0", "size: no such file"},
		{"no sysfs", func(tr tree) { vda(tr); tr.remove("sys") }, "254:0", "is sysfs mounted there?"},
		{"overlays in a circle", func(tr tree) {
			vda(tr)
			tr.mounts("1", rootOnVda2, "40 20 0:50 / /m rw - overlay overlay rw,upperdir=/m/up")
			tr.dir("m/up")
		}, "/m", "on top of each other"},
		{"devices in a circle", func(tr tree) {
			tr.slaves(tr.dm("dm-0", "253:0", "a", ""), []string{virtual + "/dm-0"})
		}, "dm-0", "on top of each other"},
		{"broken mountinfo", func(tr tree) { vda(tr); tr.file("proc/1/mountinfo", "nonsense\n") }, "/", "its mount is not in mountinfo"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := newTree(t)
			tc.build(tr)
			c, err := tr.fs().Resolve(t.Context(), tc.spec)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error\n got %v (chain %s)\nwant %s", err, c, tc.want)
			}
		})
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	tr := newTree(t)
	vda(tr)
	for _, spec := range []string{"vda", "254:0", "/"} {
		if _, err := tr.fs().Resolve(ctx, spec); !errors.Is(err, context.Canceled) {
			t.Errorf("Resolve(%q) of a canceled context: %v", spec, err)
		}
	}
	if _, _, err := tr.fs().OfMounts(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("OfMounts of a canceled context: %v", err)
	}
}

// Every symlink of a root stays inside it, whatever it says.
func TestLinksStayInside(t *testing.T) {
	tr := newTree(t)
	vda(tr)
	outside := t.TempDir()
	if err := os.WriteFile(outside+"/secret", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tr.link("up", "../../../../../../../../../.."+outside)
	tr.link("abs", outside)
	for _, spec := range []string{"/up/secret", "/abs/secret"} {
		if c, err := tr.fs().Resolve(t.Context(), spec); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Resolve(%q) = %s, %v; it left the root", spec, c, err)
		}
	}
}
