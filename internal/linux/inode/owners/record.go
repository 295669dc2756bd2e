package owners

import (
	"bytes"
	"encoding/binary"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/inode"
)

// A record is what the program writes for one open file: struct record of
// bpf/owner.bpf.c, little-endian as the target bpfel is.
type record struct {
	Inode, Number, Caller uint64
	Device, Process, FD   uint32
	OpenFlags, Flags, _   uint32
	Memory, IO            groupRecord
}

type groupRecord struct {
	ID, Parent uint64
	Flags, _   uint32
	Name       [128]byte
}

const recordBytes = 6*8 + 2*(3*8+128)

// Flags of records.
const (
	groupRoot = 1 << iota
	groupDead
)

const (
	fileKnown = 1 << iota
	fileTracked
	fileOwned
	fileBeneath
	fileReadOnly
	fileUnknown
	fileLayered
)

func decode(b []byte) (r record, err error) {
	_, err = binary.Decode(b, binary.LittleEndian, &r)
	return r, err
}

// device splits the kernel's dev_t, which is not the one of stat(2)
// (MKDEV in include/linux/kdev_t.h).
func (r record) device() blkdev.Number {
	const minorBits = 20
	return blkdev.Number{Major: r.Device >> minorBits, Minor: r.Device & (1<<minorBits - 1)}
}

func (r record) state() inode.State {
	switch {
	case r.Flags&fileUnknown != 0:
		return inode.Unknown
	case r.Flags&fileKnown == 0 || r.Flags&fileTracked == 0:
		return inode.Unkept
	case r.Flags&fileOwned == 0:
		return inode.Nobody
	}
	return inode.Owned
}

// A file is an open file, with what this package needs besides.
type file struct {
	inode.File
	identity uint64 // what the kernel tells inodes apart by
	caller   uint64 // the memory cgroup of the process that asked
	layered  bool   // in a layer of an overlay that is not known
}

// file translates all but the path.
func (r record) file(names *names) file {
	f := file{inode.File{
		PID: int(r.Process), FD: int(r.FD), OpenFlags: int(r.OpenFlags),
		Device: r.device(), Inode: r.Number,
		Beneath: r.Flags&fileBeneath != 0, ReadOnly: r.Flags&fileReadOnly != 0,
		Owner: inode.Owner{State: r.state()},
	}, r.Inode, r.Caller, r.Flags&fileLayered != 0}
	if f.Owner.State == inode.Owned {
		f.Owner.Memory, f.Owner.IO = r.Memory.group(names), r.IO.group(names)
	}
	return f
}

func (g groupRecord) group(names *names) inode.Group {
	name, _, _ := bytes.Cut(g.Name[:], []byte{0})
	group := inode.Group{ID: g.ID, Name: string(name), Root: g.Flags&groupRoot != 0, Dead: g.Flags&groupDead != 0}
	switch {
	case group.Root:
		group.Path, group.Name = "/", "/"
	case group.Dead:
		group.Path = names.below(g.Parent, group.Name)
	default:
		group.Path = names.path(g.ID)
	}
	return group
}
