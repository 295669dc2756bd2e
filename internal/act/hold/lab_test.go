package hold

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

// newGroup makes a real group with the io controller for one test.
func newGroup(t *testing.T, name string) (*cgroupfs.FS, cgroupfs.Group) {
	t.Helper()
	fs, err := cgroupfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fs.Close(); err != nil {
			t.Error(err)
		}
	})
	h, err := fs.IO(0)
	if err != nil {
		t.Fatal(err)
	}
	g, err := h.Root().Child(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Create(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	})
	if err := g.Enable("io"); err != nil {
		t.Fatal(err)
	}
	return fs, g
}

func mustRule(t *testing.T, g cgroupfs.Group, dev blkdev.Number, want limit.Limit) {
	t.Helper()
	got, err := g.Rule(dev)
	if err != nil || got != want {
		t.Errorf("rule of %s: %v, %v; want %v", dev, got, err, want)
	}
}

// A change of which one part is refused leaves what was before it.
func TestARefusedChangeIsTakenBack(t *testing.T) {
	lab.Need(t, lab.Root)
	dev := lab.RawDisk(t).Number
	_, g := newGroup(t, "weir-test-refused")
	h := Holder{State: state.At(t.TempDir())}
	before := limit.Limit{RBPS: limit.PerSecond(1e6), WBPS: limit.PerSecond(2e6)}
	if err := h.Apply(t.Context(), Plan{Group: g, Changes: []Change{{dev, before}}}); err != nil {
		t.Fatal(err)
	}
	was := limit.None.Overlay(before)
	mustRule(t, g, dev, was)
	err := h.Apply(t.Context(), Plan{Group: g, Changes: []Change{
		{dev, limit.Limit{RBPS: limit.PerSecond(5e6), WBPS: limit.Unlimited, WIOPS: limit.PerSecond(7)}},
		{blkdev.Number{Major: 4000, Minor: 1}, before}, // no such device
	}})
	var refused *cgroupfs.WriteError
	if !errors.As(err, &refused) {
		t.Fatalf("Apply on a device that is not there: %v; want a *WriteError", err)
	}
	mustRule(t, g, dev, was)
}

// A line that the kernel takes, and keeps something else of: operations are 32 bits,
// which v2 makes no limit of, and v1 cuts off.
func TestALineThatReadsBackDifferentlyIsTakenBack(t *testing.T) {
	lab.Need(t, lab.Root)
	dev := lab.RawDisk(t).Number
	_, g := newGroup(t, "weir-test-kept")
	was := limit.None.With(limit.RIOPS, limit.PerSecond(100)).With(limit.WBPS, limit.PerSecond(3e6))
	if err := g.SetRule(dev, was); err != nil {
		t.Fatal(err)
	}
	h := Holder{State: state.At(t.TempDir())}
	for _, l := range []limit.Limit{{RIOPS: limit.PerSecond(5e9)}, {WBPS: limit.PerSecond(4e6), RIOPS: limit.PerSecond(5e9)}} { // one write, and on v1 two
		err := h.Apply(t.Context(), Plan{Group: g, Changes: []Change{{dev, l}}})
		var kept *cgroupfs.WriteError
		if !errors.As(err, &kept) || kept.Err != nil {
			t.Fatalf("Apply of %v: %v; want that the kernel keeps another", l, err)
		}
		mustRule(t, g, dev, was)
	}
}

// What a killed weir left half done is taken back, rate by rate; what somebody else
// has set since is left.
func TestUndo(t *testing.T) {
	lab.Need(t, lab.Root)
	dev := lab.RawDisk(t).Number
	fs, g := newGroup(t, "weir-test-undo")
	before := limit.None.With(limit.RBPS, limit.PerSecond(1e6))
	if err := g.SetRule(dev, before); err != nil {
		t.Fatal(err)
	}
	change := limit.Limit{RBPS: limit.PerSecond(2e6), WBPS: limit.PerSecond(3e6), RIOPS: limit.PerSecond(40), WIOPS: limit.PerSecond(50)}
	dir := state.At(filepath.Join(t.TempDir(), "root"))
	entry, err := journalOf(Plan{Group: g, Changes: []Change{{dev, change}}})
	if err != nil {
		t.Fatal(err)
	}
	record, err := dir.New(journalKind, entry)
	if err != nil {
		t.Fatal(err)
	}
	// The change got as far as the third rate; somebody else then set the second.
	for _, l := range []limit.Limit{{RBPS: change.RBPS}, {WBPS: change.WBPS}, {RIOPS: change.RIOPS}, {WBPS: limit.PerSecond(9e6)}} {
		if err := g.SetRule(dev, l); err != nil {
			t.Fatal(err)
		}
	}
	if err := (Holder{State: dir}).Undo(fs); err != nil {
		t.Fatal(err)
	}
	mustRule(t, g, dev, before.Overlay(limit.Limit{WBPS: limit.PerSecond(9e6), RIOPS: change.RIOPS, RBPS: change.RBPS}))
	if err := record.Leave(); err != nil { // its owner dies
		t.Fatal(err)
	}
	if err := (Holder{State: dir}).Undo(fs); err != nil {
		t.Fatal(err)
	}
	mustRule(t, g, dev, before.With(limit.WBPS, limit.PerSecond(9e6)))
	if err := (Holder{State: dir}).Undo(fs); err != nil { // nothing is left to do
		t.Fatal(err)
	}
}
