package escape

import (
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/bpf"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
)

const (
	// Counting is what weir does when it counts escapes with BPF, for messages.
	Counting = "count writes to files of other groups"
	// KernelMin is the first with BPF ring buffers.
	KernelMin = "5.8"
)

// A File is a file through which bytes have escaped.
type File struct {
	Path   string        `json:"path"` // where it is mounted here; else within its file system, from "..." where more is not known
	Device blkdev.Number `json:"device"`
	Inode  uint64        `json:"inode"`
	Bytes  uint64        `json:"bytes"`
	Owner  inode.Group   `json:"owner"` // the group that its writeback is charged to
}

// A Watcher counts with BPF what escapes groups. Package watcher has one. What it has loaded is
// gone when it is closed or its process ends.
type Watcher interface {
	// Add starts to count a group and the groups below it. Drain reports it each time that step
	// more bytes have escaped; 0: never.
	Add(g cgroupfs.Group, step uint64) error
	Remove(id uint64) error
	// Escaped returns the bytes that have escaped a group since Add, by disk. A file system on
	// several disks (btrfs) has a number of its own, with major 0.
	Escaped(id uint64) (map[blkdev.Number]uint64, error)
	// Files returns the files through which most bytes escaped, the largest amount first.
	Files(id uint64, h *cgroupfs.Hierarchy) ([]File, error)
	// FD is a descriptor that becomes readable when Drain has something to return: the numbers of
	// groups of which step more bytes have escaped. It does not wait.
	FD() int
	Drain() (ids []uint64)
	Close() error
}

// Hindrance returns why a Watcher cannot be had here, as far as weir can know in advance; nil: no
// reason is known.
func Hindrance(groups *cgroupfs.FS) error {
	if groups.Root() != "/" {
		return &bpf.Unavailable{Op: Counting, Reason: groups.Root() + " is not the root of this host", Remedy: "only the running kernel knows; ask about this host"}
	}
	if host, err := bpf.InHostCgroups(); err == nil && !host {
		return &bpf.Unavailable{Op: Counting, Reason: "weir cannot see from this cgroup namespace where groups are", Remedy: "run weir on the host"}
	}
	return bpf.Hindrance("/", Counting, KernelMin)
}
