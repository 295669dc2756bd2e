// Package inode has what is known of an inode's writeback: which cgroup the kernel charges it to,
// and what came of moving it. Package owners reads and moves owners with BPF programs; Asker has a
// helper do that for programs that do not link them.
package inode

import (
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A File is an open file and the owner of its writeback.
type File struct {
	Path      string        `json:"path"`          // as it was given, or as the process that has it open would name it
	PID       int           `json:"pid,omitempty"` // who has it open; 0 for a file given by its path
	FD        int           `json:"fd"`            // the number it has there
	OpenFlags int           `json:"-"`             // of open(2)
	Device    blkdev.Number `json:"device"`        // of the file system, as its superblock has it (anonymous for btrfs)
	Inode     uint64        `json:"inode"`
	Beneath   bool          `json:"beneath,omitempty"`   // Device, Inode and Owner are of the file beneath an overlay
	ReadOnly  bool          `json:"read_only,omitempty"` // mounted without writing, or on a layer of an overlay that is never written
	Owner     Owner         `json:"owner"`
}

// Writes reports whether the file is open for writing.
func (f File) Writes() bool { return f.OpenFlags&unix.O_ACCMODE != unix.O_RDONLY }

// IsDirect reports whether the file is open for direct I/O.
func (f File) IsDirect() bool { return f.OpenFlags&unix.O_DIRECT != 0 }

// Handle returns a path that opens this very file, whatever its names are now.
func (f File) Handle() string {
	if f.PID == 0 {
		return f.Path
	}
	return "/proc/" + strconv.Itoa(f.PID) + "/fd/" + strconv.Itoa(f.FD)
}

// A State is what is known of an owner.
type State string

// The states.
const (
	Owned   State = "owned"   // a group owns the inode; Memory and IO name it
	Nobody  State = "nobody"  // nothing was dirtied since the inode was read: the next to dirty it will own it
	Unkept  State = "unkept"  // the kernel or the file system keeps no owners: all writeback is the root group's
	Unknown State = "unknown" // an overlay that could not be looked through
)

// An Owner is the pair of groups that an inode's writeback is charged to.
type Owner struct {
	State State `json:"state"`
	// Memory is the group whose memory controller counts the dirty pages. The kernel
	// keeps inodes by this one, and takes IO from it.
	Memory Group `json:"memory"`
	// IO is the group whose io controller the writes pass: its io.max, and those above,
	// hold them. It is Memory, or the nearest group above that has the controller.
	IO Group `json:"io"`
}

// A Group is a cgroup as an inode refers to it.
type Group struct {
	ID   uint64 `json:"id"`             // of its directory; what stat(2) calls its inode
	Path string `json:"path,omitempty"` // as /proc/PID/cgroup spells it; empty if it is not to be found
	Name string `json:"name,omitempty"` // the last element
	Root bool   `json:"root,omitempty"` // of the whole hierarchy: nothing limits it
	Dead bool   `json:"dead,omitempty"` // it was removed, and lives on for what refers to it
}

// String names the group for people.
func (g Group) String() string {
	s := g.Path
	if s == "" {
		s = ".../" + g.Name
	}
	if g.Dead {
		s += " (removed)"
	}
	return s
}
