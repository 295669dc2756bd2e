package escape_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/escape"
	"github.com/weir-io/weir/lab"
)

const mib = 1 << 20

// near is what a count may be off by: a page that was dirty already, or a folio whose inode
// had no owner.
const near = 64 << 10

// What is written to another group's file is counted, with its name and owner; what a group
// writes to its own is not.
func TestWatcher(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.FS("ext4"))
	kinds := []string{"ext4", "xfs", "btrfs"}
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			lab.Need(t, lab.FS(kind), lab.BPF)
			if kind != "ext4" {
				lab.Need(t, lab.Long, lab.BPF)
			}
			watched(t, lab.Disk(t, lab.FS(kind)))
		})
	}
}

func watched(t *testing.T, disk *lab.TestDisk) {
	limited := group(t, "limited")
	w, err := escape.Watch(openGroups(t))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Add(limited, mib); err != nil {
		t.Fatal(err)
	}
	c := counter{t, w, limited, disk}
	log := filepath.Join(disk.Dir, "log")
	write(t, limited.Hierarchy().Root(), log, 1, "conv=fsync")

	own := filepath.Join(disk.Dir, "own")
	c.wants("a fresh file", 0, func() { write(t, limited, own, 8, "conv=fsync") })
	c.wants("its own file", 0, func() { write(t, limited, own, 8, "conv=notrunc,fsync") })
	c.wants("a fresh file of a group below", 0, func() { write(t, below(t, limited), filepath.Join(disk.Dir, "below"), 4, "conv=fsync") })
	c.wants("past the page cache", 0, func() { run(t, limited, "env", handVariable+"="+own, self(t)) })
	c.wants("another's log", 3*mib, func() { write(t, limited, log, 3, "conv=notrunc", "oflag=append") })
	for _, owner := range []string{"alive", "removed", "root"} {
		file := foreign(t, disk.Dir, owner, 8)
		c.wants(owner, 6*mib, func() { write(t, limited, file, 6, "conv=notrunc,fsync") })
		c.names(file, owner)
	}
	if id, err := w.Wait(time.Now().Add(time.Second)); err != nil || id != c.id() {
		t.Errorf("after 21 steps Wait = %d, %v", id, err)
	}
	if err := w.Remove(c.id()); err != nil {
		t.Fatal(err)
	}
	if left, err := w.Escaped(c.id()); err != nil || len(left) != 0 {
		t.Errorf("after Remove %v, %v", left, err)
	}
}

func openGroups(t *testing.T) *cgroupfs.FS {
	t.Helper()
	all, err := cgroupfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	return all
}

func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// below makes a group in a group.
func below(t *testing.T, g cgroupfs.Group) cgroupfs.Group {
	t.Helper()
	child, err := g.Child("below")
	if err != nil {
		t.Fatal(err)
	}
	lab.Cgroup(t, child.Dir())
	return child
}

// A counter reads what has escaped a group on a disk.
type counter struct {
	t     *testing.T
	w     *escape.Watcher
	group cgroupfs.Group
	disk  *lab.TestDisk
}

func (c counter) id() uint64 {
	c.t.Helper()
	id, err := escape.ID(c.group)
	if err != nil {
		c.t.Fatal(err)
	}
	return id
}

func (c counter) count() (bytes uint64) {
	c.t.Helper()
	escaped, err := c.w.Escaped(c.id())
	if err != nil {
		c.t.Fatal(err)
	}
	for dev, n := range escaped {
		if c.disk.FS != "btrfs" && dev != c.disk.Number {
			c.t.Errorf("%d bytes on %s, want none but on %s", n, dev, c.disk.Number)
		}
		bytes += n
	}
	return bytes
}

func (c counter) wants(what string, want uint64, do func()) {
	c.t.Helper()
	before := c.count()
	do()
	if got := c.count() - before; got > want+near || got+near < want {
		c.t.Errorf("%s: %d bytes escaped, want %d", what, got, want)
	}
}

// names checks that a file is told with its owner.
func (c counter) names(file, owner string) {
	c.t.Helper()
	files, err := c.w.Files(c.id(), c.group.Hierarchy())
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range files {
		if f.Path != file {
			continue
		}
		switch {
		case owner == "root" && f.Owner.Root, owner == "removed" && f.Owner.Dead, owner == "alive" && f.Owner.Path != "" && !f.Owner.Root:
		default:
			c.t.Errorf("%s: the owner is %+v", file, f.Owner)
		}
		return
	}
	c.t.Errorf("%s is not among %+v", file, files)
}
