package hold

import (
	"slices"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
)

// An Expectation is what the kernel will hold of the writes that a rule bounds, by how
// the I/O is done.
type Expectation struct {
	Sync     bool   // direct and synchronous writes are charged to the group that made them
	Buffered bool   // and so are buffered and mapped ones
	Volume   bool   // buffered ones by the root group's rule and the bound of dirty pages (RootBound), for all writers together
	Why      string // why not; empty if all are
}

// cgroupWriteback are the file systems whose writeback knows the group that dirtied
// a page (SB_I_CGROUPWB in their sources).
var cgroupWriteback = []string{"btrfs", "ext2", "ext4", "f2fs", "xfs"}

// Expect says what the kernel will hold of a group's writes to a file system. Reads
// that reach the disk are always held. A nil mount stands for a device named as such.
//
// That memory is not enabled for the group does not matter: on v2 io brings it along,
// unseen, where the hierarchy has it (block/blk-cgroup.c, io_cgrp_subsys.depends_on).
func Expect(g cgroupfs.Group, fs *blkdev.Mount) Expectation {
	if g.Hierarchy().Version == cgroupfs.V1 && g.IsRoot() { // whose writeback is everybody's
		return Expectation{Sync: true, Buffered: true}
	}
	if fs != nil && fs.DataJournal() {
		return Expectation{Why: "ext4 with data=journal writes through the journal, as root (from Linux 6.4 on, what is synced is held)"}
	}
	switch h := g.Hierarchy(); {
	case h.Version == cgroupfs.V1:
		return Expectation{Sync: true, Why: "cgroup v1 charges writeback to the root group"}
	case !h.Has("memory"):
		return Expectation{Sync: true, Why: "the memory controller is not on the hierarchy of io, and writeback goes by memory's groups"}
	case fs != nil && !slices.Contains(cgroupWriteback, fs.FSType):
		return Expectation{Sync: true, Why: fs.FSType + " has no cgroup writeback"}
	}
	return Expectation{Sync: true, Buffered: true}
}

// Line says it in one line.
func (e Expectation) Line(h *cgroupfs.Hierarchy) string {
	version := "cgroup " + h.Version.String()
	switch {
	case e.Volume:
		return "direct and synchronous writes held (" + version + "), buffered ones too, with all others' to the disk (volume)"
	case e.Buffered:
		return "direct, synchronous and buffered writes held (" + version + ", writeback)"
	case e.Sync:
		return "direct and synchronous writes held (" + version + "); buffered writes NOT held: " + e.Why
	}
	return "writes NOT held (" + version + "): " + e.Why
}
