package watcher

import (
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/inode"
)

// counted is struct counted of bpf/escape.bpf.c.
type counted struct {
	Level, _    uint32
	Step, Since uint64
}

// sumKey is struct sum_key.
type sumKey struct {
	Group     uint64
	Device, _ uint32
}

// fileKey is struct file_key.
type fileKey struct{ Group, Inode, Owner uint64 }

const (
	nameBytes = 64
	namesMax  = 8

	ownerRoot = 1 << 0
	ownerDead = 1 << 1
	nameCut   = 1 << 2
)

// escapedRecord is struct escaped.
type escapedRecord struct {
	Bytes, Number             uint64
	Device, FileSystem, Flags uint32
	_                         uint32
	Owner                     [nameBytes]byte
	Names                     [namesMax][nameBytes]byte
}

const minorBits = 20 // of the kernel's own dev_t (include/linux/kdev_t.h)

func deviceOf(n uint32) blkdev.Number {
	return blkdev.Number{Major: n >> minorBits, Minor: n & (1<<minorBits - 1)}
}

func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}

func (e *escapedRecord) file(mounts []blkdev.Mount) escape.File {
	f := escape.File{Device: deviceOf(e.Device), Inode: e.Number, Bytes: e.Bytes}
	f.Owner = inode.Group{Name: text(e.Owner[:]), Root: e.Flags&ownerRoot != 0, Dead: e.Flags&ownerDead != 0}
	var names []string
	for _, name := range e.Names {
		if n := text(name[:]); n != "" {
			names = append(names, n)
		}
	}
	slices.Reverse(names)
	if len(names) > 0 {
		f.Path = pathOf(names, e.Flags&nameCut != 0, deviceOf(e.FileSystem), mounts)
	}
	return f
}

// pathOf returns a path of a file in this mount namespace. It prefers a mount that shows more
// of the file system, and then the oldest.
func pathOf(names []string, cut bool, filesystem blkdev.Number, mounts []blkdev.Mount) string {
	within := path.Join(names...)
	if cut {
		return ".../" + within
	}
	within = "/" + within
	best, found := "", false
	shown := ""
	for _, m := range mounts {
		if m.Number != filesystem || found && len(m.Root) >= len(shown) {
			continue
		}
		if rest, ok := strings.CutPrefix(within, strings.TrimSuffix(m.Root, "/")+"/"); ok {
			best, shown, found = path.Join(m.Point, rest), m.Root, true
		}
	}
	if !found {
		return within
	}
	return best
}

func readID(b []byte) (uint64, error) {
	if len(b) < 8 {
		return 0, fmt.Errorf(escape.Counting+": a record of %d bytes", len(b))
	}
	return binary.NativeEndian.Uint64(b), nil
}
