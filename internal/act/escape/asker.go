package escape

import (
	"context"

	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// HelperArg is the role of a helper that counts with package watcher. Its questions are below: with
// nothing, with a group's path in cgroup v2's hierarchy, and the others with its number.
const (
	HelperArg   = "__escaped"
	OpenWatcher = "open"
	AddGroup    = "add"
	RemoveGroup = "remove"
	BytesOf     = "bytes"
	FilesOf     = "files"
)

// An Asker has a helper count. To start one takes some 60 ms.
type Asker struct{ helper *helper.Helper }

// Ask starts a helper. If BPF is not available, the error is a *bpf.Unavailable.
func Ask(groups *cgroupfs.FS, helpers helper.Starter) (*Asker, error) {
	if err := Hindrance(groups); err != nil {
		return nil, err
	}
	h, err := helpers.Start(HelperArg)
	if err != nil {
		return nil, err
	}
	a := &Asker{h}
	if err := a.ask(OpenWatcher, nil, nil); err != nil {
		_ = h.Close()
		return nil, err
	}
	return a, nil
}

// Close ends the counting.
func (a *Asker) Close() error { return a.helper.Close() }

// Add starts to count a group and the groups below it. There are no steps: nobody is told of them.
func (a *Asker) Add(g cgroupfs.Group, _ uint64) error { return a.ask(AddGroup, g.Path(), nil) }

// Remove ends the counting of a group.
func (a *Asker) Remove(id uint64) error { return a.ask(RemoveGroup, id, nil) }

// Escaped returns the bytes that have escaped a group since Add, by disk.
func (a *Asker) Escaped(id uint64) (escaped map[blkdev.Number]uint64, err error) {
	return escaped, a.ask(BytesOf, id, &escaped)
}

// Files returns the files through which most bytes escaped, the largest amount first.
func (a *Asker) Files(id uint64, _ *cgroupfs.Hierarchy) (files []File, err error) {
	return files, a.ask(FilesOf, id, &files)
}

func (a *Asker) ask(question string, with, answer any) error {
	return a.helper.Ask(context.Background(), question, with, answer) // it answers at once
}
