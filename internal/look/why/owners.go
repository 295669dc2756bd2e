package why

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/inode"
)

var errNoOwners = errors.New("weir cannot read the kernel's inodes here")

// readOwners asks whose the writeback of files is, where the answer matters: of a file
// that was named, and of those that processes write to, on file systems whose writeback
// the kernel charges to groups.
func (f *Facts) readOwners(ctx context.Context, s Sources, q Question) error {
	a := asker{root: s.Root, open: s.Owners, devices: blkdev.New(s.Root), wholes: map[blkdev.Number]blkdev.Number{}, pids: f.Group.Processes}
	if q.Target != nil && q.Target.PID != 0 {
		a.pids = []int{q.Target.PID}
	}
	for i := range f.Places {
		p := &f.Places[i]
		switch {
		case !p.Writeback:
		case p.File != "":
			p.Files, p.OwnersErr = a.named(ctx, p.File)
		case len(a.pids) > 0:
			p.Files, p.OwnersErr = a.written(ctx, *p)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// An asker asks for owners, and for those of a process only once.
type asker struct {
	root    string
	open    func() (Owners, error)
	devices blkdev.FS
	wholes  map[blkdev.Number]blkdev.Number // of file systems' devices
	pids    []int

	asked bool
	files []inode.File // that the processes have open for writing
	err   error
}

func (a *asker) owners() (Owners, error) {
	if a.open == nil {
		return nil, errNoOwners
	}
	return a.open()
}

// named asks for one file. A link is followed, as a program that opens it does.
func (a *asker) named(ctx context.Context, file string) ([]inode.File, error) {
	owners, err := a.owners()
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(filepath.Join(a.root, file))
	if err != nil {
		return nil, err
	}
	files, err := owners.OfPaths(ctx, []string{real})
	if err != nil {
		return nil, err
	}
	return known(files)
}

// known leaves out the files whose owners were looked for in vain.
func known(files []inode.File) ([]inode.File, error) {
	var err error
	files = slices.DeleteFunc(files, func(file inode.File) bool {
		if file.Owner.State != inode.Unknown {
			return false
		}
		err = fmt.Errorf("%s is on an overlay that weir could not resolve", file.Path)
		return true
	})
	return files, err
}

// written returns the files on a place's devices that the processes have open for
// writing through the page cache, each once.
func (a *asker) written(ctx context.Context, p Place) ([]inode.File, error) {
	if !a.asked {
		a.asked = true
		a.files, a.err = a.ofProcesses(ctx)
	}
	if a.err != nil {
		return nil, a.err
	}
	var here []inode.File
	for _, file := range a.files {
		if a.isOn(ctx, file, p) {
			here = append(here, file)
		}
	}
	return known(here)
}

func (a *asker) ofProcesses(ctx context.Context) ([]inode.File, error) {
	owners, err := a.owners()
	if err != nil {
		return nil, err
	}
	all, err := owners.OfProcesses(ctx, a.pids)
	if err != nil {
		return nil, err
	}
	type identity struct {
		device blkdev.Number
		inode  uint64
	}
	seen := map[identity]bool{}
	var written []inode.File
	for _, file := range all {
		id := identity{file.Device, file.Inode}
		if !file.Writes() || file.IsDirect() || seen[id] {
			continue
		}
		seen[id] = true
		written = append(written, file)
	}
	slices.SortStableFunc(written, func(x, y inode.File) int { return strings.Compare(x.Path, y.Path) })
	return written, nil
}

// isOn reports whether a file is on a file system of the place, or on another one of
// its devices: a limit does not tell those apart.
func (a *asker) isOn(ctx context.Context, file inode.File, p Place) bool {
	for _, l := range p.Chain.Layers {
		if l.Mount != nil && l.Mount.Number == file.Device {
			return true
		}
	}
	whole, known := a.wholes[file.Device]
	if !known && file.Device.Major != 0 {
		if d, err := a.devices.Device(ctx, file.Device); err == nil {
			whole = d.Whole().Number
		}
		a.wholes[file.Device] = whole
	}
	return slices.ContainsFunc(p.Devices, func(d Device) bool { return d.Number == whole })
}
