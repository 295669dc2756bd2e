package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
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
			Remedy: "set one with weir set " + t.String() + " --write 10MB/s, or leave the target out to measure a group of weir's own"}
	}
	pid := firstProcess(t)
	var places []prove.Place
	for _, b := range bindings {
		place := prove.Place{Host: a.launchHost(), Target: t.Group, Inside: inside, Limit: b.Limit}
		if place.Device, err = blkdev.New(a.root).Device(ctx, b.Device); err != nil {
			return err
		}
		if len(b.Above) > 0 {
			a.out.Say("note: on %s, limits of %s bind it too", place.Device.Node, strings.Join(b.Above, ", "))
		}
		if !doc.observed {
			reached, err := a.reach(ctx, &place, pid, f.places)
			if err != nil {
				return err
			}
			if !reached {
				a.out.Say("note: %s (%s) is limited, and no directory of the target is on it where a file can be made; name one with --on DIR", place.Device.Node, b.Device)
				continue
			}
		}
		places = append(places, place)
	}
	if len(places) == 0 {
		return &cgroupfs.Unsupported{Feature: "prove " + t.String(), Reason: "none of its limited devices can be reached",
			Remedy: "name a directory with --on DIR, or watch what it does itself with --observe 10s"}
	}
	if doc.observed {
		return a.observe(ctx, doc, places, f)
	}
	a.out.Say("loads run inside %s and share its limits for that long; nothing of it is changed or left", inside.Path())
	return a.proveRows(ctx, doc, places, f)
}

// reach finds a directory on a place's device: of those that were named, or of the
// mounts of a process, by way of its own root.
func (a *app) reach(ctx context.Context, place *prove.Place, pid int, named []string) (bool, error) {
	root := ""
	if pid != 0 {
		root = fmt.Sprintf("/proc/%d/root", pid)
	}
	devices := blkdev.New(a.root)
	chains, _, err := devices.OfMounts(ctx, pid)
	if err != nil {
		return false, err
	}
	for _, dir := range named {
		at := filepath.Join(root, dir)
		if !usable(at) {
			return false, cli.Usagef("prove --on %s: the target has no such directory, or cannot write there", dir)
		}
		on, mount, err := deviceOf(ctx, devices, chains, at)
		if err != nil {
			return false, err
		}
		if on == place.Device.Number {
			place.Dir, place.FS = at, mount
			return true, nil
		}
	}
	if len(named) > 0 {
		return false, nil
	}
	for _, c := range chains {
		if !slices.ContainsFunc(c.Devices, func(d blkdev.Device) bool { return d.Number == place.Device.Number }) {
			continue
		}
		mounts, err := devices.MountsOf(pid, *firstMount(c))
		if err != nil {
			return false, err
		}
		for _, m := range mounts {
			if at := filepath.Join(root, m.Point); usable(at) {
				place.Dir = at
				if fs, ok := c.FileSystem(); ok {
					place.FS = &fs
				}
				return true, nil
			}
		}
	}
	return false, nil
}

// deviceOf takes a directory of another process's to its whole disk, by the number of
// its file system.
func deviceOf(ctx context.Context, devices blkdev.FS, chains []blkdev.Chain, dir string) (blkdev.Number, *blkdev.Mount, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return blkdev.Number{}, nil, err
	}
	st := info.Sys().(*syscall.Stat_t)
	n := blkdev.Number{Major: unix.Major(st.Dev), Minor: unix.Minor(st.Dev)}
	for _, c := range chains {
		if m := firstMount(c); m != nil && m.Number == n && len(c.Devices) > 0 {
			fs, _ := c.FileSystem()
			return c.Devices[0].Number, &fs, nil
		}
	}
	d, err := devices.Device(ctx, n)
	return d.Whole().Number, nil, err
}

func firstMount(c blkdev.Chain) *blkdev.Mount {
	for _, l := range c.Layers {
		if l.Mount != nil {
			return l.Mount
		}
	}
	return nil
}

// usable reports whether files can be made in a directory.
func usable(dir string) bool {
	var st unix.Statfs_t
	info, err := os.Stat(dir)
	return err == nil && info.IsDir() && unix.Statfs(dir, &st) == nil && st.Flags&unix.ST_RDONLY == 0
}

func (a *app) observe(ctx context.Context, doc report, places []prove.Place, f *proveFlags) error {
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
