package blkdev

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestOfMounts(t *testing.T) {
	tr := newTree(t)
	btrfsOnTwo(tr)
	vda(tr)
	tr.dir("var/lib/up")
	tr.dm("dm-0", "253:0", "vg0-db", "LVM-x", "devices/pci0000:00/block/vda")
	tr.mounts("1", rootOnVda2) // where overlays' directories are looked up
	tr.mounts("4711",
		`20 1 0:50 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/up,workdir=/w`,
		"21 20 0:3 / /proc rw - proc proc rw",
		"22 20 0:9 / /dev rw - tmpfs tmpfs rw",
		"23 20 254:2 /etc/hosts /etc/hosts rw - ext4 /dev/vda2 rw",
		"24 20 253:0 / /db rw - xfs /dev/mapper/vg0-db rw",
		"25 20 0:40 /@data /data rw - btrfs /dev/sda1 rw,subvol=/@data",
		"26 20 0:40 /@x /data2 rw - btrfs /dev/sda1 rw,subvol=/@x",
		"27 20 0:41 / /net rw - nfs4 srv:/x rw",
		"28 20 8:99 / /gone rw - ext4 /dev/sdz rw",
		"29 20 254:1 / /boot rw - ext4 /dev/vda1 rw",
	)
	chains, skipped, err := tr.fs().OfMounts(t.Context(), 4711)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range chains {
		got = append(got, c.String())
	}
	want := []string{
		"mount / → overlay, upper directory /var/lib/up → mount / → ext4 on /dev/vda2 (partition) → /dev/vda",
		"mount /db → xfs on /dev/mapper/vg0-db (LVM on /dev/vda)",
		"mount /data (subvolume /@data) → btrfs on /dev/sda1 (partition), /dev/sdb → /dev/sda, /dev/sdb",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("chains\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
	if got := numbers(Devices(chains)); got != "254:0 253:0 8:0 8:16" {
		t.Errorf("devices %s", got)
	}
	if len(skipped) != 2 || skipped[0].Mount.Point != "/net" || skipped[1].Mount.Point != "/gone" {
		t.Fatalf("skipped %+v, want /net and /gone", skipped)
	}
	b, err := json.Marshal(skipped[0])
	if err != nil || !strings.Contains(string(b), `"reason":"nfs4 keeps its files on another machine`) {
		t.Errorf("JSON of a skipped mount %s (%v)", b, err)
	}
}

// A mount is found by its ID or its path, and a btrfs subvolume's leads to its disks.
func TestMountAt(t *testing.T) {
	tr := newTree(t)
	btrfsOnTwo(tr)
	tr.mounts("7", "20 1 8:1 / / rw - ext4 /dev/sda1 rw", "30 20 0:40 /@a /data rw - btrfs /dev/sdb rw", "31 30 0:40 /@b /data/b rw - btrfs /dev/sdb rw")
	for _, c := range []struct {
		id         int
		path, want string
	}{{30, "/elsewhere", "/data"}, {0, "/data/x", "/data"}, {0, "/data/b/x", "/data/b"}, {0, "/x", "/"}, {99, "/data", ""}} {
		m, err := tr.fs().MountAt(7, c.id, c.path)
		if m.Point != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%d %s: %s, %v; want %s", c.id, c.path, m.Point, err, c.want)
		}
		if m.FSType != "btrfs" {
			continue
		}
		if chain, err := tr.fs().OfMount(t.Context(), m); err != nil || numbers(chain.Devices) != "8:0 8:16" {
			t.Errorf("%s: %s, %v", m.Point, chain, err)
		}
	}
}

// A disk that an earlier mount is on is not given twice.
func TestOfMountsShare(t *testing.T) {
	tr := newTree(t)
	btrfsOnTwo(tr)
	tr.mounts("7", "20 1 8:1 / / rw - ext4 /dev/sda1 rw", "30 20 0:40 / /data rw - btrfs /dev/sdb rw")
	chains, _, err := tr.fs().OfMounts(t.Context(), 7)
	if err != nil || len(chains) != 2 {
		t.Fatalf("%v, %v", chains, err)
	}
	if first, second := numbers(chains[0].Devices), numbers(chains[1].Devices); first != "8:0" || second != "8:16" {
		t.Errorf("devices %s and %s, want 8:0 and 8:16", first, second)
	}
}

func TestOfMountsInit(t *testing.T) {
	tr := newTree(t)
	vda(tr)
	chains, _, err := tr.fs().OfMounts(t.Context(), 0)
	if err != nil || len(chains) != 1 || numbers(chains[0].Devices) != "254:0" {
		t.Errorf("of another root's init: %v, %v", chains, err)
	}
	if _, _, err := tr.fs().OfMounts(t.Context(), 99); err == nil || !strings.Contains(err.Error(), "read mounts of process 99: no such process") {
		t.Errorf("of no process: %v", err)
	}
}

// Neither a line that cannot be read, nor one of 70 kB, nor a process that has ended hides
// the other mounts; of very many without a device the first ones are told.
func TestOfMountsOfOthersMaking(t *testing.T) {
	tr := newTree(t)
	vda(tr)
	tr.mounts("1", rootOnVda2)
	deep := strings.Repeat("/"+strings.Repeat("d", 250), 280)
	lines := []string{"30 20 0:60 / " + deep + " rw - fuse.x x rw", "rw,upperdir=/evil rw"}
	for n := range 10_000 {
		lines = append(lines, fmt.Sprintf("%d 20 0:%d / /m/%d rw - fuse.x x rw", 100+n, 100+n, n))
	}
	tr.file("proc/4711/mountinfo", strings.Join(append(lines, rootOnVda2), "\n")+"\n")
	chains, skipped, err := tr.fs().OfMounts(t.Context(), 4710, 4711)
	if err != nil || len(chains) != 1 || numbers(Devices(chains)) != "254:0" {
		t.Fatalf("chains %v, %v", chains, err)
	}
	first, last := skipped[0], skipped[len(skipped)-1]
	if len(skipped) != maxSkipped+1 || first.Mount.Point != "/proc/4711/mountinfo" || first.Reason != "line 2 cannot be read and is left out: it has too few fields" ||
		last.Reason != "9994 more without a device" {
		t.Errorf("%d skipped: %+v ... %+v", len(skipped), first, last)
	}
	for _, s := range skipped {
		if len(s.Reason) > 4000 {
			t.Errorf("a reason of %d bytes", len(s.Reason))
		}
	}
	if _, _, err := tr.fs().OfMounts(t.Context(), 4710); err == nil {
		t.Error("of a process that is gone nothing is known")
	}
}
