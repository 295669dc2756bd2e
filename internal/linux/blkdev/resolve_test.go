package blkdev

import (
	"encoding/json"
	"strings"
	"testing"
)

const rootOnVda2 = "20 1 254:2 / / rw,relatime - ext4 /dev/root rw"

// A resolveCase builds a tree, resolves spec there, and has the line that a person
// reads, the numbers of the devices that take the rule, and words of the notes.
type resolveCase struct {
	name    string
	build   func(tree)
	spec    string
	line    string
	devices string
	note    string
}

var deviceCases = []resolveCase{
	{"disk by number", vda, "254:0", "254:0 → /dev/vda", "254:0", ""},
	{"disk by name", vda, "vda", "vda → /dev/vda", "254:0", ""},
	{"disk by node that is no node here", vda, "/dev/vda", "/dev/vda", "254:0", ""},
	{"partition by number", vda, "254:2", "254:2 → /dev/vda2 (partition) → /dev/vda", "254:0", "vda2 is a partition of vda; the limit is on the whole disk"},
	{"partition by node", vda, "/dev/vda2", "/dev/vda2 (partition) → /dev/vda", "254:0", "vda2 is a partition"},
	{"dev/ without a slash before it", vda, "dev/vda2", "dev/vda2 → /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"link by uuid", vda, "/dev/disk/by-uuid/aa-bb", "/dev/disk/by-uuid/aa-bb → /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"absolute link stays in the root", vda, "/dev/disk/by-id/absolute", "/dev/disk/by-id/absolute → /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"UUID tag", vda, "UUID=aa-bb", "UUID=aa-bb → /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"LABEL tag with a space", vda, `LABEL="my data"`, `LABEL="my data" → /dev/vda2 (partition) → /dev/vda`, "254:0", ""},
	{"nvme partition", func(tr tree) { tr.part(tr.disk("nvme0n1", "259:0"), "nvme0n1p2", "259:2") },
		"nvme0n1p2", "nvme0n1p2 → /dev/nvme0n1p2 (partition) → /dev/nvme0n1", "259:0", ""},
	{"mmc partition", func(tr tree) { tr.part(tr.disk("mmcblk0", "179:0"), "mmcblk0p1", "179:1") },
		"/dev/mmcblk0p1", "/dev/mmcblk0p1 (partition) → /dev/mmcblk0", "179:0", ""},
	{"name with a slash", func(tr tree) { tr.part(tr.disk("cciss!c0d0", "104:0"), "cciss!c0d0p1", "104:1") },
		"/dev/cciss/c0d0p1", "/dev/cciss/c0d0p1 (partition) → /dev/cciss/c0d0", "104:0", ""},
	{"bare name with a slash", func(tr tree) { tr.disk("cciss!c0d0", "104:0") },
		"cciss/c0d0", "cciss/c0d0 → /dev/cciss/c0d0", "104:0", ""},
	{"LVM by mapper name", lvm, "vg0-root", "vg0-root → /dev/mapper/vg0-root (LVM on /dev/sda2 (partition), /dev/sdb)", "253:0", ""},
	{"LVM by node", lvm, "/dev/mapper/vg0-root", "/dev/mapper/vg0-root (LVM on /dev/sda2 (partition), /dev/sdb)", "253:0", ""},
	{"LVM by group and volume", lvm, "vg0/root", "vg0/root → /dev/mapper/vg0-root (LVM on /dev/sda2 (partition), /dev/sdb)", "253:0", ""},
	{"LVM by its link", lvm, "/dev/vg0/root", "/dev/vg0/root → /dev/mapper/vg0-root (LVM on /dev/sda2 (partition), /dev/sdb)", "253:0", ""},
	{"LVM with hyphens, no link", lvm, "my-vg/my-lv", "my-vg/my-lv → /dev/mapper/my--vg-my--lv (LVM on /dev/sdb)", "253:1", ""},
	{"dm by kernel name", lvm, "dm-0", "dm-0 → /dev/mapper/vg0-root (LVM on /dev/sda2 (partition), /dev/sdb)", "253:0", ""},
	{"crypt on LVM", func(tr tree) {
		lv := tr.dm("dm-0", "253:0", "vg0-home", "LVM-x", tr.disk("sda", "8:0"))
		tr.dm("dm-1", "253:1", "home", "CRYPT-LUKS2-x", lv)
	}, "dm-1", "dm-1 → /dev/mapper/home (crypt on /dev/mapper/vg0-home (LVM on /dev/sda))", "253:1", ""},
	{"multipath with a partition", func(tr tree) {
		m := tr.dm("dm-0", "253:0", "mpatha", "mpath-3600", tr.disk("sda", "8:0"), tr.disk("sdb", "8:16"))
		tr.dm("dm-1", "253:1", "mpatha-part1", "part1-mpath-3600", m)
	}, "253:1", "253:1 → /dev/mapper/mpatha-part1 (dm partition on /dev/mapper/mpatha (multipath on /dev/sda, /dev/sdb))", "253:1", ""},
	{"dm without a uuid", func(tr tree) { tr.dm("dm-3", "253:3", "plain", "", tr.disk("sda", "8:0")) },
		"plain", "plain → /dev/mapper/plain (dm on /dev/sda)", "253:3", ""},
	{"md", func(tr tree) {
		tr.md("md0", "9:0", "raid1", tr.disk("sda", "8:0"), tr.disk("sdb", "8:16"))
	}, "/dev/md0", "/dev/md0 (md raid1 on /dev/sda, /dev/sdb)", "9:0", ""},
	{"partition of md", func(tr tree) {
		tr.part(tr.md("md127", "9:127", "raid5", tr.disk("sda", "8:0")), "md127p1", "259:5")
	}, "md127p1", "md127p1 → /dev/md127p1 (partition) → /dev/md127 (md raid5 on /dev/sda)", "9:127", "md127p1 is a partition of md127"},
	{"bcache", func(tr tree) {
		tr.slaves(tr.device(virtual, "bcache0", "252:0"), []string{tr.disk("sda", "8:0")})
	}, "bcache0", "bcache0 → /dev/bcache0 (disk on /dev/sda)", "252:0", ""},
	{"loop without a file", func(tr tree) { tr.device(virtual, "loop7", "7:7") }, "loop7", "loop7 → /dev/loop7 (loop)", "7:7", ""},
	{"loop on a file", loopOnVda2, "loop0", "loop0 → /dev/loop0 (loop on /srv/disk.img on /dev/vda2 (partition))", "7:0", ""},
	{"partition of loop", loopOnVda2, "loop0p1", "loop0p1 → /dev/loop0p1 (partition) → /dev/loop0 (loop on /srv/disk.img on /dev/vda2 (partition))", "7:0", ""},
	{"loop on a deleted file", func(tr tree) {
		tr.mounts("1", "20 1 0:9 / / rw - tmpfs tmpfs rw")
		tr.loop("loop1", "7:1", "/srv/gone.img (deleted)", "0")
	}, "loop1", "loop1 → /dev/loop1 (loop on /srv/gone.img (deleted))", "7:1", "weir cannot tell which disk loop1 is on: resolve /srv/gone.img: the file was deleted"},
	{"loop on a file called deleted", func(tr tree) {
		vda(tr)
		tr.file("srv/a (deleted)", "")
		tr.loop("loop1", "7:1", "/srv/a (deleted)", "0")
	}, "loop1", "loop1 → /dev/loop1 (loop on /srv/a (deleted) on /dev/vda2 (partition))", "7:1", ""},
	{"loop on tmpfs", func(tr tree) {
		vda(tr)
		tr.mounts("1", rootOnVda2, "21 20 0:9 / /tmp rw - tmpfs tmpfs rw")
		tr.file("tmp/x.img", "")
		tr.loop("loop1", "7:1", "/tmp/x.img", "0")
	}, "loop1", "loop1 → /dev/loop1 (loop on /tmp/x.img)", "7:1", "tmpfs keeps its files in memory"},
	{"dm on loop", func(tr tree) {
		loopOnVda2(tr)
		tr.dm("dm-0", "253:0", "lin", "", virtual+"/loop0")
	}, "lin", "lin → /dev/mapper/lin (dm on /dev/loop0 (loop on /srv/disk.img on /dev/vda2 (partition)))", "253:0", ""},
	{"anonymous number of a mount", func(tr tree) {
		btrfsOnTwo(tr)
	}, "0:40", "0:40 → mount /data (subvolume /@data) → btrfs on /dev/sda1 (partition), /dev/sdb → /dev/sda, /dev/sdb", "8:0 8:16", "btrfs is on 2 devices"},
}

func vda(tr tree) {
	d := tr.disk("vda", "254:0")
	tr.part(d, "vda1", "254:1")
	tr.part(d, "vda2", "254:2")
	tr.file("dev/vda1", "") // as a plain file; vda and vda2 are not there at all
	tr.link("dev/disk/by-uuid/aa-bb", "../../vda2")
	tr.link("dev/disk/by-label/my\\x20data", "../../vda2")
	tr.link("dev/disk/by-id/absolute", "/dev/vda2")
	tr.mounts("1", rootOnVda2)
}

func lvm(tr tree) {
	a, b := tr.part(tr.disk("sda", "8:0"), "sda2", "8:2"), tr.disk("sdb", "8:16")
	tr.dm("dm-0", "253:0", "vg0-root", "LVM-abc", a, b)
	tr.dm("dm-1", "253:1", "my--vg-my--lv", "LVM-abd", b)
	tr.link("dev/vg0/root", "../dm-0")
	tr.mounts("1", "20 1 253:0 / / rw - xfs /dev/mapper/vg0-root rw,logdev=/dev/sdb9")
}

func loopOnVda2(tr tree) {
	vda(tr)
	tr.file("srv/disk.img", "")
	tr.part(tr.loop("loop0", "7:0", "/srv/disk.img", "1"), "loop0p1", "259:0")
}

func btrfsOnTwo(tr tree) {
	tr.part(tr.disk("sda", "8:0"), "sda1", "8:1")
	tr.disk("sdb", "8:16")
	tr.disk("sdc", "8:32")
	tr.dir("sys/fs/btrfs/features")
	tr.link("sys/fs/btrfs/1-2-3-4-5/devices/sdc", "x")
	tr.link("sys/fs/btrfs/6-2-3-4-5/devices/sda1", "x")
	tr.link("sys/fs/btrfs/6-2-3-4-5/devices/sdb", "x")
	tr.mounts("1",
		"20 1 8:32 / / rw - ext4 /dev/sdc rw",
		`30 20 0:40 /@data /data rw - btrfs /dev/sdb rw,subvolid=256,subvol=/@data`,
		`31 20 0:40 /@data/sub /bound rw - btrfs /dev/sda1 rw,subvolid=256,subvol=/@data`)
}

var mountCases = []resolveCase{
	{"file on a partition", func(tr tree) { vda(tr); tr.file("srv/x", "") }, "/srv/x",
		"/srv/x → mount / → ext4 on /dev/vda2 (partition) → /dev/vda", "254:0", "vda2 is a partition of vda"},
	{"symlink to another mount", func(tr tree) {
		vda(tr)
		tr.disk("sdb", "8:16")
		tr.mounts("1", rootOnVda2, `22 20 8:16 / /mnt/my\040data rw - xfs /dev/sdb rw`)
		tr.link("home", "/mnt/my data/../my data")
	}, "/home", "/home → mount /mnt/my data → xfs on /dev/sdb", "8:16", ""},
	{"bind mount", func(tr tree) {
		vda(tr)
		tr.mounts("1", rootOnVda2, "22 20 254:2 /srv/a /mnt rw - ext4 /dev/root rw")
	}, "/mnt", "/mnt → mount /mnt (bind of /srv/a) → ext4 on /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"the last mount on a point wins", func(tr tree) {
		vda(tr)
		tr.disk("sdb", "8:16")
		tr.mounts("1", rootOnVda2, "22 20 254:1 / /mnt rw - ext4 /dev/vda1 rw", "23 22 8:16 / /mnt rw - ext4 /dev/sdb rw")
	}, "/mnt", "/mnt → mount /mnt → ext4 on /dev/sdb", "8:16", ""},
	{"a mount that hides a longer prefix", func(tr tree) {
		vda(tr)
		tr.disk("sdb", "8:16")
		tr.mounts("1", rootOnVda2, "22 20 254:1 / /a/b rw - ext4 /dev/vda1 rw", "23 20 8:16 / /a rw - ext4 /dev/sdb rw")
	}, "/a/b", "/a/b → mount /a → ext4 on /dev/sdb", "8:16", ""},
	{"no mount for the root", func(tr tree) {
		vda(tr)
		tr.mounts("1", "22 20 254:1 / /a rw - ext4 /dev/vda1 rw", "23 20 254:2 / /a rw - ext4 /dev/vda2 rw")
	}, "/a", "/a → mount /a → ext4 on /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"XFS on LVM with a log elsewhere", lvm, "/", "/ → mount / → xfs on /dev/mapper/vg0-root (LVM on /dev/sda2 (partition), /dev/sdb)", "253:0", "logdev=/dev/sdb9"},
	{"ext4 on a loop device", func(tr tree) {
		loopOnVda2(tr)
		tr.mounts("1", rootOnVda2, "22 20 7:0 / /mnt rw - ext4 /dev/loop0 rw")
	}, "/mnt", "/mnt → mount /mnt → ext4 on /dev/loop0 (loop on /srv/disk.img on /dev/vda2 (partition))", "7:0", ""},
	{"btrfs on two devices", btrfsOnTwo, "/data",
		"/data → mount /data (subvolume /@data) → btrfs on /dev/sda1 (partition), /dev/sdb → /dev/sda, /dev/sdb", "8:0 8:16", "btrfs is on 2 devices; weir sets the whole limit on each"},
	{"btrfs, bind of a directory", btrfsOnTwo, "/bound",
		"/bound → mount /bound (bind of /@data/sub) → btrfs on /dev/sda1 (partition), /dev/sdb → /dev/sda, /dev/sdb", "8:0 8:16", ""},
	{"btrfs on two partitions of one disk", func(tr tree) {
		vda(tr)
		tr.link("sys/fs/btrfs/6-2-3-4-5/devices/vda1", "x")
		tr.link("sys/fs/btrfs/6-2-3-4-5/devices/vda2", "x")
		tr.mounts("1", "20 1 0:30 / / rw - btrfs /dev/vda1 rw")
	}, "/", "/ → mount / → btrfs on /dev/vda1 (partition), /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"btrfs on /dev/root", func(tr tree) {
		vda(tr)
		tr.link("sys/fs/btrfs/6-2-3-4-5/devices/vda1", "x")
		tr.mounts("1", "20 1 0:30 / / rw - btrfs /dev/root rw")
	}, "/", "/ → mount / → btrfs on /dev/vda1 (partition) → /dev/vda", "254:0", ""},
	{"btrfs that sysfs does not list", func(tr tree) {
		vda(tr)
		tr.mounts("1", "20 1 0:30 / / rw - btrfs /dev/vda1 rw")
	}, "/", "/ → mount / → btrfs on /dev/vda1 (partition) → /dev/vda", "254:0", "weir could not list"},
	{"mount point that would clear the screen", func(tr tree) {
		vda(tr)
		tr.mounts("1", rootOnVda2, `22 20 254:1 / /mnt/\033[2Ja\012b rw - ext4 /dev/vda1 rw`)
	}, "/mnt/\x1b[2Ja\nb", `/mnt/\x1b[2Ja\nb → mount /mnt/\x1b[2Ja\nb → ext4 on /dev/vda1 (partition) → /dev/vda`, "254:0", ""},
	{"overlay", func(tr tree) {
		vda(tr)
		tr.dir("var/lib/up,a")
		tr.mounts("1", rootOnVda2, `40 20 0:50 / /merged rw - overlay overlay rw,lowerdir=/l1:/l2,upperdir=/var/lib/up\054a,workdir=/w`)
	}, "/merged", "/merged → mount /merged → overlay, upper directory /var/lib/up,a → mount / → ext4 on /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"overlay whose option kept its backslash", func(tr tree) {
		vda(tr)
		tr.dir("up,a")
		tr.mounts("1", rootOnVda2, `40 20 0:50 / /m rw - overlay overlay rw,lowerdir=/l,upperdir=/up\134\054a,workdir=/w`)
	}, "/m", "/m → mount /m → overlay, upper directory /up,a → mount / → ext4 on /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"overlay on overlay", func(tr tree) {
		vda(tr)
		tr.dir("up")
		tr.mounts("1", rootOnVda2, `40 20 0:50 / /m1 rw - overlay overlay rw,lowerdir=/l,upperdir=/up,workdir=/w`,
			`41 20 0:51 / /m2 rw - overlay overlay rw,lowerdir=/l,upperdir=/m1/up,workdir=/w`)
		tr.dir("m1/up")
	}, "/m2", "/m2 → mount /m2 → overlay, upper directory /m1/up → mount /m1 → overlay, upper directory /up → mount / → ext4 on /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"overlay that only reads", func(tr tree) {
		vda(tr)
		tr.dir("l:1")
		tr.mounts("1", rootOnVda2, `40 20 0:50 / /m ro - overlay overlay ro,lowerdir=/l\134:1:/l2`)
	}, "/m", "/m → mount /m → overlay, read only, lower directory /l:1 → mount / → ext4 on /dev/vda2 (partition) → /dev/vda", "254:0", ""},
	{"fuseblk", func(tr tree) {
		vda(tr)
		tr.mounts("1", rootOnVda2, "40 20 254:1 / /ntfs rw - fuseblk /dev/vda1 rw")
	}, "/ntfs", "/ntfs → mount /ntfs → fuseblk on /dev/vda1 (partition) → /dev/vda", "254:0", ""},
	{"anonymous number with a device as source", func(tr tree) {
		vda(tr)
		tr.mounts("1", rootOnVda2, "40 20 0:77 / /new rw - newfs /dev/vda1 rw")
	}, "/new", "/new → mount /new → newfs on /dev/vda1 (partition) → /dev/vda", "254:0", ""},
	{"erofs on a file", func(tr tree) {
		vda(tr)
		tr.file("img/x.erofs", "")
		tr.mounts("1", rootOnVda2, "40 20 0:77 / /ro ro - erofs /img/x.erofs ro")
	}, "/ro", "/ro → mount /ro → erofs on /img/x.erofs → mount / → ext4 on /dev/vda2 (partition) → /dev/vda", "254:0", ""},
}

func TestResolve(t *testing.T) {
	for _, group := range []struct {
		name  string
		cases []resolveCase
	}{{"device", deviceCases}, {"mount", mountCases}} {
		for _, tc := range group.cases {
			t.Run(group.name+"/"+tc.name, func(t *testing.T) { tc.check(t) })
		}
	}
}

func (tc resolveCase) check(t *testing.T) {
	tr := newTree(t)
	tc.build(tr)
	c, err := tr.fs().Resolve(t.Context(), tc.spec)
	if err != nil {
		t.Fatalf("Resolve(%q): %v (after %s)", tc.spec, err, c)
	}
	if got := c.String(); got != tc.line {
		t.Errorf("chain\n got %s\nwant %s", got, tc.line)
	}
	if got := numbers(c.Devices); got != tc.devices {
		t.Errorf("devices %s, want %s", got, tc.devices)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, tc.note) {
		t.Errorf("notes %q lack %q", notes, tc.note)
	}
	for _, d := range c.Devices {
		if d.SizeBytes != 1<<20 {
			t.Errorf("%s is %d bytes long, want %d", d.Name, d.SizeBytes, 1<<20)
		}
		if d.Kind == Partition {
			t.Errorf("%s is a partition and takes no rule", d.Name)
		}
	}
}

func numbers(devs []Device) string {
	var s []string
	for _, d := range devs {
		s = append(s, d.Number.String())
	}
	return strings.Join(s, " ")
}

func TestFileSystem(t *testing.T) {
	tr := newTree(t)
	vda(tr)
	tr.dir("up")
	tr.mounts("1", rootOnVda2, `40 20 0:50 / /m rw - overlay overlay rw,lowerdir=/l,upperdir=/up,workdir=/w`)
	c, err := tr.fs().Resolve(t.Context(), "/m")
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := c.FileSystem(); !ok || m.FSType != "ext4" || m.Point != "/" {
		t.Errorf("FileSystem() = %+v, %v, want the ext4 below the overlay", m, ok)
	}
	c, err = tr.fs().Resolve(t.Context(), "vda")
	if _, ok := c.FileSystem(); ok || err != nil {
		t.Errorf("a named disk has a file system (%v)", err)
	}
}

func TestChainJSON(t *testing.T) {
	tr := newTree(t)
	loopOnVda2(tr)
	c, err := tr.fs().Resolve(t.Context(), "loop0p1")
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"spec":"loop0p1"`, `"number":"7:0"`, `"kind":"partition"`, `"size_bytes":1048576`,
		`"backing":{"file":"/srv/disk.img","direct_io":true}`,
		`"notes":["loop0p1 is a partition of loop0; the limit is on the whole disk"]`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("JSON lacks %s:\n%s", want, b)
		}
	}
}
