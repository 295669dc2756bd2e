package inode_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/lab"
)

// One helper process moves the files of all tests, because loading the program takes long on
// an emulated processor.
func TestInode(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.NoSystemd)
	began := time.Now()
	t.Cleanup(func() { t.Logf("took %v", time.Since(began)) })
	mender := newHand(t, 0)
	for fs, owners := range map[string][]string{"ext4": {"alive", "removed"}, "xfs": {"alive"}, "btrfs": {"removed"}} {
		if testing.Short() && fs != "ext4" {
			continue
		}
		t.Run(fs, func(t *testing.T) {
			lab.Need(t, lab.BPF, lab.FS(fs))
			t.Parallel()
			p := parts{disk: lab.Disk(t, lab.FS(fs)), writer: newHand(t, 0), mender: mender}
			for _, owner := range owners {
				t.Run(owner, func(t *testing.T) { p.handOver(t, owner == "removed") })
			}
		})
	}
	t.Run("others", func(t *testing.T) {
		lab.Need(t, lab.BPF, lab.FS("ext4"))
		t.Parallel()
		p := parts{disk: lab.Disk(t, lab.FS("ext4")), writer: newHand(t, 0), mender: mender}
		t.Run("process", p.ofProcess)
		t.Run("nobody", p.nobody)
		t.Run("refused", p.refused)
		t.Run("direct", p.direct)
		t.Run("loop", p.loop)
		t.Run("overlay", p.overlay)
	})
	t.Run("pids", otherPIDs)
}

// parts are what tests of one disk share.
type parts struct {
	disk           *lab.TestDisk
	writer, mender *hand
}

// A file that one group has made is rewritten by another one, whose limit does not hold
// that until the ownership is moved. Whether the first group still exists matters not.
func (p parts) handOver(t *testing.T, removed bool) {
	first, second := group(t, "first"), group(t, "second")
	file := filepath.Join(p.disk.Dir, filepath.Base(t.Name()))
	p.writer.in(t, first, nil, "fill", file)
	owned(t, file, first)
	if removed {
		if err := first.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	if err := second.SetRule(p.disk.Number, limit.Limit{WBPS: limit.PerSecond(bound)}); err != nil {
		t.Fatal(err)
	}
	rewrite := func() (rate float64) {
		p.writer.in(t, second, &rate, "rewrite", file)
		return rate
	}
	lab.Ratio(t, "another's file", bound, lab.Band{Low: 1.5, High: math.Inf(1)}, rewrite)
	before := at(t, file).Owner
	if removed && !before.Memory.Dead && !before.Memory.Root || !removed && before.Memory.Path != first.Path() {
		t.Errorf("the owner before: %+v", before)
	}
	var m inode.Mended
	p.mender.in(t, second, &m, "mend", file)
	t.Logf("mended: %s to %s in %d rounds, %v", before.Memory, m.After.Owner.Memory, m.Rounds, m.Took)
	owned(t, file, second)
	// The writer lags where the processor is emulated; more than the limit is the kernel's.
	lab.Ratio(t, "its own file", bound, lab.Band{Low: 0.4, High: 1.15}, rewrite)
	owned(t, file, second)
	if got, err := os.ReadFile(file); err != nil || string(got) != content() {
		t.Errorf("the file's bytes have changed (%v)", err)
	}
}

// at looks at a file's owner.
func at(t *testing.T, file string) inode.File {
	t.Helper()
	f, err := look(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// owned fails unless a group, which is alive, owns a file.
func owned(t *testing.T, file string, g cgroupfs.Group) {
	t.Helper()
	o := at(t, file).Owner
	if o.State != inode.Owned || o.Memory.Path != g.Path() || o.IO != o.Memory || o.Memory.Dead || o.Memory.Root {
		t.Errorf("the owner of %s is %+v, want %s", file, o, g.Path())
	}
}

func group(t *testing.T, name string) cgroupfs.Group {
	t.Helper()
	all, err := cgroupfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { all.Close() })
	g, err := all.Unified().Root().Child(strings.ReplaceAll(t.Name(), "/", "-") + "-" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Enable("io", "memory"); err != nil {
		t.Fatal(err)
	}
	if err := g.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(); err != nil && !cgroupfs.IsGone(err) {
			t.Error(err)
		}
	})
	return g
}
