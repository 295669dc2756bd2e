package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/pacer"
	"github.com/weir-io/weir/internal/prove"
	"github.com/weir-io/weir/internal/target"
)

// proveTarget measures what runs already: with loads inside its group, or by watching.
func (a *app) proveTarget(ctx context.Context, spec string, f *proveFlags) error {
	t, err := a.target(ctx, spec)
	if err != nil {
		return err
	}
	doc := report{what: t.String(), target: &t, observed: f.observe > 0}
	inside := t.Group
	if !doc.observed {
		if inside, err = prove.Inside(t.Group); err != nil {
			return err
		}
	}
	bindings, err := prove.Bindings(inside)
	if err != nil {
		return err
	}
	bindings = slices.DeleteFunc(bindings, func(b prove.Binding) bool { return !b.Limit.Bounds() })
	if len(bindings) == 0 {
		return &cgroupfs.Unsupported{Feature: "prove " + t.String(), Reason: "cgroup " + t.Group.Path() + " has no disk I/O limit",
			Remedy: "set one with weir set " + t.String() + " --write 10MB/s, or leave out the target to measure in a new group"}
	}
	job, err := a.jobOf(t.Group)
	if err != nil {
		return err
	}
	views, err := viewsOf(t)
	if err != nil {
		return err
	}
	defer views.close()
	var places []prove.Place
	defer func() {
		for _, p := range places {
			if p.Folder != nil {
				_ = p.Folder.Close() // nothing is written to it
			}
		}
	}()
	own, err := prove.Bindings(t.Group)
	if err != nil {
		return err
	}
	for _, b := range bindings {
		limited := t.Group
		if !slices.ContainsFunc(own, func(o prove.Binding) bool { return o.Device == b.Device && o.Limit == b.Limit }) {
			limited = inside // a group on the way there has a lower one
		}
		for limited.Hierarchy().Version == cgroupfs.V2 && !limited.IsRoot() && !limited.Offers("io") {
			limited = limited.Parent() // it is what is charged, and limited
		}
		place := prove.Place{Host: a.launchHost(), Target: limited, Inside: inside, Limit: b.Limit, Unit: t.Owner.Unit}
		if job != nil && job.Lapsed == "" && slices.Contains(job.Devices, b.Device) {
			place.Paced, place.Escapes = job.Count == pacer.CountWritten, job.Count == pacer.CountEscaped
		}
		if job != nil && t.Group.Hierarchy().Version == cgroupfs.V1 {
			cells, err := job.Cells(a.fs)
			if err != nil {
				return err
			}
			if len(cells) > 0 { // else the pacer brings the load to one
				place.Stopped = cells[0]
			}
		}
		if place.Device, err = blkdev.New(a.root).Device(ctx, b.Device); err != nil {
			return err
		}
		if len(b.Above) > 0 {
			a.out.Say("note: on %s, limits of %s apply to it too", place.Device.Node, strings.Join(b.Above, ", "))
		}
		if !doc.observed {
			reached, err := a.reach(ctx, &place, views, f.places)
			if err != nil {
				return err
			}
			if !reached {
				a.out.Say("note: %s (%s) is limited, but weir finds no directory of the target on it where it can create a file; name one with --on DIR", place.Device.Node, b.Device)
				continue
			}
		}
		places = append(places, place)
	}
	if len(places) == 0 {
		return &cgroupfs.Unsupported{Feature: "prove " + t.String(), Reason: "weir can create a file on none of its limited devices",
			Remedy: "name a directory with --on DIR, or watch the target's own I/O with --observe 10s"}
	}
	if doc.observed {
		return a.observe(ctx, doc, places, f)
	}
	a.out.Say("weir's loads run inside %s and share its limits and its memory; nothing is left behind", inside.Path())
	return a.proveRows(ctx, doc, places, f)
}

// A view is a process of a target's, by whose root and mounts its places are found.
type view struct {
	pid  int // 0: weir itself
	root prove.Root
}

type views []view

// viewsOf opens the roots of those processes whose mounts are the target's.
func viewsOf(t target.Target) (all views, err error) {
	defer func() {
		if err != nil {
			all.close()
		}
	}()
	for _, pid := range t.Views() {
		root, err := prove.OpenRoot(pid)
		if err != nil {
			return all, err
		}
		all = append(all, view{pid, root})
	}
	// If one had ended before, its number may have become another's.
	members, err := target.Members(t.Group)
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
func (a *app) reach(ctx context.Context, place *prove.Place, all views, named []string) (bool, error) {
	for _, dir := range named {
		reached, err := a.reachNamed(ctx, place, all, dir)
		if reached || err != nil {
			return reached, err
		}
	}
	if len(named) > 0 {
		return false, nil
	}
	for _, v := range all {
		reached, err := a.reachMounts(ctx, place, v)
		if reached || err != nil {
			return reached, err
		}
	}
	return false, nil
}

// reachNamed looks for a directory by way of each view's own root.
func (a *app) reachNamed(ctx context.Context, place *prove.Place, all views, dir string) (bool, error) {
	anyUsable := false
	for _, v := range all {
		in := dir
		if v.pid == 0 {
			var err error
			if in, err = filepath.Abs(dir); err != nil {
				return false, err
			}
		}
		reached, usable, err := a.stay(ctx, place, v, in)
		if reached || err != nil {
			return reached, err
		}
		anyUsable = anyUsable || usable
	}
	if !anyUsable {
		return false, cli.Usagef("prove --on %s: the target has no such directory, or cannot write there", dir)
	}
	return false, nil
}

// reachMounts looks through the mounts of a view.
func (a *app) reachMounts(ctx context.Context, place *prove.Place, v view) (bool, error) {
	devices := blkdev.New(a.root)
	chains, _, err := devices.OfMounts(ctx, v.pid)
	if err != nil {
		return false, err
	}
	for _, c := range chains {
		if !on(c, place.Device) {
			continue
		}
		mounts, err := devices.MountsOf(v.pid, *firstMount(c))
		if err != nil {
			return false, err
		}
		for _, m := range mounts {
			// A mount that hides another may lead elsewhere, or nowhere.
			if reached, _, err := a.stay(ctx, place, v, m.Point); err == nil && reached {
				return true, nil
			}
		}
	}
	return false, nil
}

// stay puts a place into a directory below a view's root, and holds it open, if it is on the
// place's device. usable says that files can be made there.
func (a *app) stay(ctx context.Context, place *prove.Place, v view, path string) (reached, usable bool, err error) {
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
	if !prove.Writable(dir) {
		return false, false, nil
	}
	id, path, err := v.root.Where(dir)
	if err != nil {
		return false, true, err
	}
	devices := blkdev.New(a.root)
	mount, err := devices.MountAt(v.pid, id, path)
	if err != nil {
		return false, true, err
	}
	c, err := devices.OfMount(ctx, mount)
	if err != nil || !on(c, place.Device) {
		return false, true, err
	}
	place.Dir, place.Folder, place.Chain = path, dir, &c
	if fs, ok := c.FileSystem(); ok {
		place.FS = &fs
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

func (a *app) observe(ctx context.Context, doc report, places []prove.Place, f *proveFlags) error {
	var err error
	if doc.asked, err = a.ask(ctx, doc.target, places, f); err != nil {
		return err
	}
	progress := cli.NewProgress(os.Stderr)
	began := time.Now()
	rows, err := a.prover(progress).Observe(ctx, places, func() ([]int, error) { return target.Members(doc.target.Group) }, f.observe)
	progress.Clear()
	if err != nil {
		return err
	}
	doc.rows, doc.places, doc.took = rows, places, time.Since(began)
	return a.reportProof(doc, f)
}
