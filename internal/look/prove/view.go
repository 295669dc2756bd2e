package prove

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
)

// A view is a process of a target, by whose root and mounts its places are found.
type view struct {
	pid  int // 0: weir itself
	root Root
}

type views []view

// viewsOf opens the roots of those processes whose mounts are the target's.
func viewsOf(t targets.Target) (all views, err error) {
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	for _, pid := range t.Views() {
		root, err := OpenRoot(pid)
		if err != nil {
			return all, err
		}
		all = append(all, view{pid, root})
	}
	// If one had ended before, its number may have become another's.
	members, err := targets.Members(t.Group)
	for _, v := range all {
		if err == nil && v.pid != 0 && !slices.Contains(members, v.pid) {
			err = fmt.Errorf("prove %s: process %d has ended; try again", t, v.pid)
		}
	}
	return all, err
}

func (vs views) close() {
	for _, v := range vs {
		_ = v.root.Close() // nothing is written to it
	}
}

// reach finds a directory on a place's device: of those that were named, or of the
// mounts of the target's processes.
func (t *Trial) reach(ctx context.Context, at *Place, all views) (bool, error) {
	for _, dir := range t.request.Dirs {
		reached, err := t.reachNamed(ctx, at, all, dir)
		if reached || err != nil {
			return reached, err
		}
	}
	if len(t.request.Dirs) > 0 {
		return false, nil
	}
	for _, v := range all {
		reached, err := t.reachMounts(ctx, at, v)
		if reached || err != nil {
			return reached, err
		}
	}
	return false, nil
}

// reachNamed looks for a directory by way of each view's own root.
func (t *Trial) reachNamed(ctx context.Context, at *Place, all views, dir string) (bool, error) {
	anyUsable := false
	for _, v := range all {
		in := dir
		if v.pid == 0 {
			var err error
			if in, err = filepath.Abs(dir); err != nil {
				return false, err
			}
		}
		reached, usable, err := t.stay(ctx, at, v, in)
		if reached || err != nil {
			return reached, err
		}
		anyUsable = anyUsable || usable
	}
	if !anyUsable {
		return false, &UnreachableError{dir}
	}
	return false, nil
}

// reachMounts looks through the mounts of a view.
func (t *Trial) reachMounts(ctx context.Context, at *Place, v view) (bool, error) {
	devices := t.host.Devices()
	chains, _, err := devices.OfMounts(ctx, v.pid)
	if err != nil {
		return false, err
	}
	for _, c := range chains {
		if !on(c, at.Device) {
			continue
		}
		mounts, err := devices.MountsOf(v.pid, *firstMount(c))
		if err != nil {
			return false, err
		}
		for _, m := range mounts {
			// A mount that hides another may lead elsewhere, or nowhere.
			if reached, _, err := t.stay(ctx, at, v, m.Point); err == nil && reached {
				return true, nil
			}
		}
	}
	return false, nil
}

// stay puts a place into a directory below a view's root, and holds it open, if it is on the
// place's device. usable says that files can be made there.
func (t *Trial) stay(ctx context.Context, at *Place, v view, path string) (reached, usable bool, err error) {
	dir, err := v.root.Open(path)
	var missing *os.PathError
	if errors.As(err, &missing) {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	defer func() {
		if !reached {
			_ = dir.Close()
		}
	}()
	if !Writable(dir) {
		return false, false, nil
	}
	id, path, err := v.root.Where(dir)
	if err != nil {
		return false, true, err
	}
	devices := t.host.Devices()
	mount, err := devices.MountAt(v.pid, id, path)
	if err != nil {
		return false, true, err
	}
	c, err := devices.OfMount(ctx, mount)
	if err != nil || !on(c, at.Device) {
		return false, true, err
	}
	at.Dir, at.Folder, at.Chain = path, dir, &c
	if fs, ok := c.FileSystem(); ok {
		at.FS = &fs
	}
	return true, true, nil
}

func on(c blkdev.Chain, d blkdev.Device) bool {
	return slices.ContainsFunc(c.Devices, func(other blkdev.Device) bool { return other.Number == d.Number })
}

func firstMount(c blkdev.Chain) *blkdev.Mount {
	for _, l := range c.Layers {
		if l.Mount != nil {
			return l.Mount
		}
	}
	return nil
}
