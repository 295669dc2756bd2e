package place

import (
	"slices"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
)

// A Kernel is what the kernel itself holds of a group's writes to a file system. It always
// charges reads from the disk to the reader's group.
type Kernel struct {
	Direct   bool   // direct writes are charged to the group that made them
	Sync     bool   // and so are those that the writer has synced
	Buffered bool   // and so is what the kernel writes back later
	Why      string // why not; empty if all are
	// Uncounted is why the kernel does not count for a process what it writes, so that no pacer can hold
	// that; empty: it does.
	Uncounted string
}

// cgroupWriteback are the file systems whose writeback knows the group that dirtied
// a page (SB_I_CGROUPWB in their sources).
var cgroupWriteback = []string{"btrfs", "ext2", "ext4", "f2fs", "xfs"}

// A Controller is what a group's controllers can do for it.
type Controller struct {
	Version cgroupfs.Version
	Root    bool           // the group is its hierarchy's root
	Memory  bool           // v2: the memory controller is on the hierarchy of io
	Release kernel.Release // the zero Release: not known
}

// ControllerOf reads the facts about a group that exists, or will be made.
func ControllerOf(g cgroupfs.Group, release kernel.Release) Controller {
	return Controller{g.Hierarchy().Version, g.IsRoot(), g.Hierarchy().Has("memory"), release}
}

// Writes says which writes to a file system the kernel holds. A nil mount stands for a device
// named as such.
//
// It does not matter if memory is not enabled for the group: on v2 io enables it implicitly, if
// the hierarchy has it (block/blk-cgroup.c, io_cgrp_subsys.depends_on).
//
// If io and memory are on one v2 hierarchy, the kernel was built with CONFIG_CGROUP_WRITEBACK,
// even if its configuration cannot be read: the option has no prompt, and it is on wherever both
// controllers are built (init/Kconfig: "depends on MEMCG && BLK_CGROUP", "default y";
// 89e9b9e07a39).
func (c Controller) Writes(fs *blkdev.Mount) Kernel {
	if fs != nil && fs.DAX() {
		return Kernel{Why: fs.FSType + " with dax copies straight to and from persistent memory, past every limit"}
	}
	if c.Version == cgroupfs.V1 && c.Root { // whose writeback is everybody's
		return Kernel{Direct: true, Sync: true, Buffered: true}
	}
	if fs != nil && fs.DataJournal() {
		k := Kernel{Sync: c.Release.Major != 0 && !c.Release.Before(6, 4), Why: "ext4 with data=journal writes through its journal, which is charged to the root group (from Linux 6.4 on, synchronous writes are held)"}
		if !k.Sync { // there the journal's thread has the pages dirtied: measured on 6.1, where the pacer saw nothing of 300 MB
			k.Uncounted = "before Linux 6.4 the kernel counts for no process what it writes to ext4 with data=journal"
		}
		return k
	}
	k := Kernel{Direct: true, Sync: true}
	switch {
	case c.Version == cgroupfs.V1:
		k.Why = "cgroup v1 charges writeback to the root group"
	case !c.Memory:
		k.Why = "the memory controller is not on the same hierarchy as io, so the kernel charges writeback to the root group"
	case fs != nil && !slices.Contains(cgroupWriteback, fs.FSType):
		k.Why = fs.FSType + " has no cgroup writeback"
	default:
		k.Buffered = true
	}
	return k
}
