package volume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/linux/loopdev"
)

// Each method here lists what the method of its name does now, in order, and refuses what that
// refuses. None of them locks or changes anything. The file of a volume is not known before it is
// made, so its record is named and not spelled.

// CreateSteps lists what Create would do.
func (s Store) CreateSteps(spec Spec) ([]hold.Step, error) {
	v, f, err := s.asked(spec)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(v.Image)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && spec.On == "" {
		err = s.fresh(v) // the directory of all volumes is made with the first
		dir = existing(dir)
		if err != nil {
			return nil, err
		}
	} else if err := s.free(v); err != nil {
		return nil, err
	}
	var room unix.Statfs_t
	if err := unix.Statfs(dir, &room); err != nil {
		return nil, fmt.Errorf("volume %s: look at %s: %w", v.Name, dir, err)
	}
	if err := fits(0, spec.Size, room, dir); err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	steps := []hold.Step{called("allocate %s for %s", sizeText(spec.Size), v.Image), {Command: cmdline.Line(append(slices.Clone(f.mkfs), v.Image))}}
	if _, err := os.Lstat(v.Mount); errors.Is(err, fs.ErrNotExist) {
		steps = append(steps, called("make the directory %s", v.Mount))
	}
	more, err := s.attachSteps(v)
	return append(steps, more...), err
}

// existing is the nearest directory above a path that is there.
func existing(path string) string {
	for path != "/" {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}

// AdoptSteps lists what Adopt would do.
func (s Store) AdoptSteps(ctx context.Context, dir string, l limit.Limit) ([]hold.Step, error) {
	v, err := s.named(dir)
	if err != nil {
		return nil, err
	}
	if err := s.mayLimit(l); err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	v.Limit = l.Bound()
	if err := s.found(ctx, &v); err != nil {
		return nil, err
	}
	steps, err := s.bindSteps(v.Device, v.Limit)
	return append(steps, s.saveStep(v)), err
}

// SetSteps lists what Set would do.
func (s Store) SetSteps(name string, l limit.Limit, targets []string) ([]hold.Step, error) {
	v, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	at, err := s.changed(&v, l, targets)
	if err != nil {
		return nil, err
	}
	var steps []hold.Step
	if at.Up {
		if steps, err = s.bindSteps(at.Device, v.Limit); err != nil {
			return nil, err
		}
	}
	return append(steps, s.saveStep(v)), nil
}

// ResizeSteps lists what Resize would do.
func (s Store) ResizeSteps(name string, size uint64) ([]hold.Step, error) {
	v, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	at, f, image, err := s.mayGrow(v, size)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	more, err := fillSteps(v, image, size)
	if err != nil {
		return nil, fmt.Errorf("resize volume %s: %w", v.Name, err)
	}
	return append(more, called("tell %s of the size of %s", loopdev.Node(at.Loop), v.Image), hold.Step{Command: cmdline.Line(f.grow(loopdev.Node(at.Loop), v.Mount))}), nil
}

// fillSteps is the space that a file still has to take.
func fillSteps(v Volume, image *os.File, size uint64) ([]hold.Step, error) {
	var st unix.Stat_t
	var room unix.Statfs_t
	if err := errors.Join(unix.Fstat(int(image.Fd()), &st), unix.Fstatfs(int(image.Fd()), &room)); err != nil {
		return nil, err
	}
	has := uint64(st.Blocks) * 512
	if has >= size && uint64(st.Size) >= size {
		return nil, nil
	}
	return []hold.Step{called("allocate %s for %s", sizeText(size), v.Image)}, fits(has, size, room, filepath.Dir(v.Image))
}

// UpSteps lists what Up would do.
func (s Store) UpSteps(name string) ([]hold.Step, error) {
	v, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	if err := s.mayLimit(v.Limit); err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	at, err := s.Where(v)
	if err != nil {
		return nil, err
	}
	if at.Up {
		steps, err := s.bindSteps(at.Device, v.Limit)
		if at.Loop != v.Loop || v.Adopted() && at.Device != v.Device {
			steps = append([]hold.Step{s.saveStep(v)}, steps...)
		}
		return steps, err
	}
	if v.Adopted() {
		return nil, nothingMounted(v)
	}
	image, err := openImage(v)
	if err != nil {
		return nil, err
	}
	defer image.Close()
	if err := s.notAttached(v, image); err != nil {
		return nil, err
	}
	var steps []hold.Step
	empty, err := isEmpty(v.Mount)
	switch {
	case errors.Is(err, fs.ErrNotExist) && v.MadeMount:
		steps = append(steps, called("make the directory %s", v.Mount))
	case err != nil || !empty:
		return nil, s.emptyPlace(v) // which refuses it, and makes nothing
	}
	st, err := image.Stat()
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	space, err := fillSteps(v, image, uint64(st.Size()))
	if err != nil {
		return nil, fmt.Errorf("volume %s: %w", v.Name, err)
	}
	more, err := s.attachSteps(v)
	return slices.Concat(steps, space, more), err
}

// DownSteps lists what Down would do.
func (s Store) DownSteps(name string) ([]hold.Step, error) {
	v, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	if v.Adopted() {
		return nil, notWeirsMount(v)
	}
	at, err := s.Where(v)
	if err != nil {
		return nil, err
	}
	if !at.Up {
		return s.leftSteps(v)
	}
	if err := s.busy(v, at); err != nil {
		return nil, err
	}
	node := loopdev.Node(at.Loop)
	return []hold.Step{called("unmount %s", at.Mount.Point), called("detach %s", node), called("remove %s", node)}, nil
}

// DeleteSteps lists what Delete would do.
func (s Store) DeleteSteps(name string) ([]hold.Step, error) {
	v, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	forget := hold.Step{File: s.path(v.Name, ready)}
	if v.Adopted() {
		its, err := s.isStill(v)
		if err != nil || !its {
			return []hold.Step{forget}, err
		}
		steps, err := s.restoreSteps(v.Device, *v.Before)
		return append(steps, forget), err
	}
	if err := s.mayDelete(v); err != nil {
		return nil, err
	}
	steps, err := s.leftSteps(v)
	if err != nil {
		return nil, err
	}
	steps = append(steps, hold.Step{File: v.Image})
	if empty, err := isEmpty(v.Mount); err == nil && empty && v.MadeMount {
		steps = append(steps, called("remove the directory %s", v.Mount))
	}
	return append(steps, forget), nil
}

// ForgetSteps lists what Forget would do.
func (s Store) ForgetSteps(name string) ([]hold.Step, error) {
	v, err := s.Find(name)
	if err != nil {
		return nil, err
	}
	if err := s.mayForget(v); err != nil {
		return nil, err
	}
	steps, err := s.leftSteps(v)
	return append(steps, hold.Step{File: s.path(v.Name, ready)}), err
}

// attachSteps make a device of a volume's file, bound it, mount it, and put it on record.
func (s Store) attachSteps(v Volume) ([]hold.Step, error) {
	steps, err := s.leftSteps(v)
	if err != nil {
		return nil, err
	}
	n := firstLoop
	for s.machine().exists(n) && (n != v.Loop || len(steps) == 0) { // unless it is removed first
		n++
	}
	node, dev := loopdev.Node(n), s.machine().numberOfNew(n)
	steps = append(steps, called("make %s", node), called("attach %s to %s", v.Image, node), called("have %s refuse discards", node))
	if s.hasRootRules() && v.Limit.Bounds() {
		steps = append(steps, hold.Plan{Group: s.IO.Root(), Changes: []hold.Change{{Device: dev, Limit: v.Limit.Bound()}}}.Steps()...)
	}
	bdi, err := s.Kernel.NewBDI(dev)
	if err != nil {
		return nil, err
	}
	steps = append(steps, dirtySteps(bdi, v.Limit)...)
	return append(steps, called("mount %s at %s (%s, nodev, nosuid)", node, v.Mount, v.FS), s.saveStep(v)), nil
}

// bindSteps put a limit on a device in use.
func (s Store) bindSteps(dev blkdev.Number, l limit.Limit) ([]hold.Step, error) {
	steps, bdi, err := s.ruleSteps(dev, l)
	return append(steps, dirtySteps(bdi, l)...), err
}

// restoreSteps give a device what it had.
func (s Store) restoreSteps(dev blkdev.Number, was bounds) ([]hold.Step, error) {
	steps, bdi, err := s.ruleSteps(dev, was.Root)
	return append(steps, lineSteps(bdi.ToUnbound(was.Dirty))...), err
}

func (s Store) ruleSteps(dev blkdev.Number, l limit.Limit) (steps []hold.Step, bdi kernel.BDI, err error) {
	if s.hasRootRules() {
		plan, err := s.rootPlan(dev, l)
		if err != nil {
			return nil, bdi, err
		}
		steps = plan.Steps()
	}
	bdi, there, err := s.Kernel.BDI(dev)
	if err == nil && !there {
		_, err = s.Kernel.Bounds(dev) // which says so
	}
	return steps, bdi, err
}

func dirtySteps(bdi kernel.BDI, l limit.Limit) []hold.Step {
	if n, bound := DirtyFor(l); bound {
		return lineSteps(bdi.ToBound(n))
	}
	return lineSteps(bdi.ToUnbound(kernel.Unbounded))
}

func lineSteps(lines []kernel.Line) (steps []hold.Step) {
	for _, l := range lines {
		steps = append(steps, hold.Step{File: l.File, Line: l.Text})
	}
	return steps
}

// leftSteps remove the device of a volume that was unmounted without weir.
func (s Store) leftSteps(v Volume) ([]hold.Step, error) {
	left, err := s.isLeft(v)
	if err != nil || !left {
		return nil, err
	}
	return []hold.Step{called("remove %s", loopdev.Node(v.Loop))}, nil
}

func (s Store) saveStep(v Volume) hold.Step {
	return called("save the record %s", s.path(v.Name, ready))
}

func called(format string, args ...any) hold.Step {
	return hold.Step{Call: fmt.Sprintf(format, args...)}
}

// nothingMounted is the error for an adopted mount that is not there.
func nothingMounted(v Volume) error {
	return fault.With(fmt.Errorf("volume %s: nothing is mounted at %s", v.Name, v.Mount), fault.Remedy{Do: fault.AdoptedMount, Target: v.Name})
}

// notWeirsMount is the error for an adopted mount that weir is to unmount.
func notWeirsMount(v Volume) error {
	return fault.With(fmt.Errorf("volume %s is an adopted mount", v.Name), fault.Remedy{Do: fault.AdoptedUnmount, Target: v.Name, Also: v.Mount})
}
