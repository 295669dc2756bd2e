package hold

import (
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
)

// An Expectation is what the kernel will hold of the writes and reads that a rule
// bounds, by how the I/O is done.
type Expectation struct {
	Buffered bool   // buffered and mapped writes are charged to the group that made them
	Why      string // why they are not; empty if they are
}

// cgroupWriteback are the file systems whose writeback knows the group that dirtied
// a page (SB_I_CGROUPWB in their sources).
var cgroupWriteback = []string{"btrfs", "ext2", "ext4", "f2fs", "xfs"}

// Expect says what the kernel will hold of a group's writes to a file system. Direct
// and synchronous writes, and reads that reach the disk, are always held: they are
// submitted by the process itself. A nil mount stands for a device named as such, and
// a group that is not there yet is taken for one that weir makes.
func Expect(g cgroupfs.Group, fs *blkdev.Mount) Expectation {
	switch h := g.Hierarchy(); {
	case h.Version == cgroupfs.V1:
		return Expectation{Why: "cgroup v1 charges writeback to the root group"}
	case !h.Has("memory"):
		return Expectation{Why: "the memory controller is not on the hierarchy of io, and writeback goes by memory's groups"}
	case !g.Offers("memory"):
		// A page belongs to the nearest group with memory, and is written back as
		// that group's I/O (mm/backing-dev.c, cgwb_create).
		why := "writeback goes by memory's groups, and memory is not enabled for " + g.Path()
		if missing, err := g.Missing("memory"); err == nil && len(missing) > 0 {
			why += "; echo " + missing[0].Line + " > " + missing[0].File
		}
		return Expectation{Why: why}
	case fs == nil:
		return Expectation{Buffered: true}
	case !slices.Contains(cgroupWriteback, fs.FSType):
		return Expectation{Why: fs.FSType + " has no cgroup writeback"}
	}
	if mode, _ := fs.SuperOption("data"); fs.FSType == "ext4" && mode == "journal" {
		return Expectation{Why: "ext4 with data=journal writes through the journal, as root"}
	}
	return Expectation{Buffered: true}
}

// Line says it in one line.
func (e Expectation) Line(h *cgroupfs.Hierarchy) string {
	version := "cgroup " + h.Version.String()
	if e.Buffered {
		return "direct, synchronous and buffered writes held (" + version + ", writeback)"
	}
	return strings.Join([]string{"direct and synchronous writes held (", version, "); buffered writes NOT held: ", e.Why}, "")
}
