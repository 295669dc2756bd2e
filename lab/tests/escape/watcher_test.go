package escape_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/act/escape/watcher"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/lab"
)

const mib = 1 << 20

// The watcher counts writes to another group's file, with the file's name and owner. It does
// not count writes to the group's own files.
func TestWatcher(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.FS("ext4"))
	for _, kind := range kinds() {
		t.Run(kind, func(t *testing.T) {
			lab.Need(t, lab.FS(kind), lab.BPF)
			watched(t, lab.Disk(t, lab.FS(kind)))
		})
	}
}

// kinds are the file systems of a test: one where all are not worth their time.
func kinds() []string {
	if testing.Short() {
		return []string{"ext4"}
	}
	return []string{"ext4", "xfs", "btrfs"}
}

func watched(t *testing.T, disk *lab.TestDisk) {
	limited := group(t, "limited")
	w, err := watcher.Watch(openGroups(t))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Add(limited, mib); err != nil {
		t.Fatal(err)
	}
	id, err := limited.ID()
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{t: t, limited: limited, disk: disk}
	// A page was dirty already, or a folio was the first of an inode without an owner.
	s.near = 64 << 10
	s.count = func() (bytes uint64) {
		escaped, err := w.Escaped(id)
		if err != nil {
			t.Fatal(err)
		}
		for dev, n := range escaped {
			if !escape.Disks(t.Context(), dev)(disk.Number) {
				t.Errorf("%d bytes on %s, want none but on %s", n, dev, disk.Number)
			}
			bytes += n
		}
		return bytes
	}
	s.named = func(file, owner string) {
		files, err := w.Files(id, limited.Hierarchy())
		if err != nil {
			t.Fatal(err)
		}
		names(t, files, file, owner)
	}
	s.play()
	if got, err := w.Wait(time.Now().Add(time.Second)); err != nil || got != id {
		t.Errorf("after 21 steps Wait = %d, %v", got, err)
	}
	if err := w.Remove(id); err != nil {
		t.Fatal(err)
	}
	if left, err := w.Escaped(id); err != nil || len(left) != 0 {
		t.Errorf("after Remove %v, %v", left, err)
	}
}

// Without BPF weir estimates the same amount from counters.
func TestEstimate(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Once, lab.FS("ext4"))
	for _, kind := range kinds() {
		t.Run(kind, func(t *testing.T) {
			lab.Need(t, lab.FS(kind))
			disk, limited := lab.Disk(t, lab.FS(kind)), group(t, "limited")
			e, err := escape.NewEstimate(limited, []blkdev.Number{disk.Number})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			s := &scene{t: t, limited: limited, disk: disk, near: mib}
			s.count = func() uint64 {
				r, err := e.LookAt(s.written)
				if err != nil {
					t.Fatal(err)
				}
				return r.Escaped
			}
			s.play()
		})
	}
}

// A scene is what a group writes, and what of it is to escape.
type scene struct {
	t       *testing.T
	limited cgroupfs.Group
	disk    *lab.TestDisk
	near    uint64        // bytes that a count may be off by
	written uint64        // by the limited group's commands
	count   func() uint64 // bytes that have escaped so far
	named   func(file, owner string)
}

func (s *scene) play() {
	t, limited := s.t, s.limited
	log := filepath.Join(s.disk.Dir, "log")
	write(t, limited.Hierarchy().Root(), log, 1, "conv=fsync")

	own := filepath.Join(s.disk.Dir, "own")
	s.wants("a fresh file", 0, func() { write(t, limited, own, 8, "conv=fsync") })
	s.wants("its own file", 0, func() { write(t, limited, own, 8, "conv=notrunc,fsync") })
	s.wants("a fresh file of a group below", 0, func() { write(t, below(t, limited), filepath.Join(s.disk.Dir, "below"), 4, "conv=fsync") })
	s.wants("past the page cache", 0, func() { run(t, limited, "env", handVariable+"=direct "+own, self(t)) })
	s.wants("another's log", 3*mib, func() { write(t, limited, log, 3, "conv=notrunc,fsync", "oflag=append") })
	for _, owner := range []string{"alive", "removed", "root"} {
		file := foreign(t, s.disk.Dir, owner, 8)
		s.wants(owner, 6*mib, func() { write(t, limited, file, 6, "conv=notrunc,fsync") })
		if s.named != nil {
			s.named(file, owner)
		}
	}
}

func (s *scene) wants(what string, want uint64, do func()) {
	s.t.Helper()
	before, was := s.count(), ran
	do()
	s.written += ran - was
	got := s.count() - before
	s.t.Logf("%s: %d bytes escaped", what, got)
	if got > want+s.near || got+s.near < want {
		s.t.Errorf("%s: %d bytes escaped, want %d", what, got, want)
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

// names checks that a file is told with its owner.
func names(t *testing.T, files []escape.File, file, owner string) {
	t.Helper()
	for _, f := range files {
		if f.Path != file {
			continue
		}
		switch {
		case owner == "root" && f.Owner.Root, owner == "removed" && f.Owner.Dead, owner == "alive" && f.Owner.Path != "" && !f.Owner.Root:
		default:
			t.Errorf("%s: the owner is %+v", file, f.Owner)
		}
		return
	}
	t.Errorf("%s is not among %+v", file, files)
}
