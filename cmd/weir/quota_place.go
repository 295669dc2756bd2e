package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/quota"
	"github.com/weir-io/weir/internal/target"
)

// withFiles are the kinds of targets that have files of their own on the host.
var withFiles = []string{"docker", "podman", "containerd"}

// withoutFiles are those that have none: what they write is in directories that others use.
var withoutFiles = []string{"unit", "pid", "cgroup", "pod", "vm"}

// kindOf returns the kind that a target is spelled with, or "".
func kindOf(spec string, kinds []string) string {
	kind, _, ok := strings.Cut(spec, ":")
	if ok && slices.Contains(kinds, kind) {
		return kind
	}
	return ""
}

// quotaPlace finds the directories for a quota.
func (a *app) quotaPlace(ctx context.Context, spec string) (quota.Place, error) {
	if kind := kindOf(spec, withoutFiles); kind != "" {
		return quota.Place{}, cli.Usagef("quota: %s has no directory of its own; name a directory, or a container (%s:NAME)", spec, strings.Join(withFiles, ":NAME, "))
	}
	if kindOf(spec, withFiles) == "" {
		isDir := false
		if info, err := os.Stat(spec); err == nil {
			isDir = info.IsDir()
		}
		if strings.Contains(spec, "/") || spec == "." || spec == ".." {
			return quota.Place{Dirs: []string{spec}}, nil
		}
		named, err := a.containerCalled(ctx, spec)
		switch {
		case err != nil:
			return quota.Place{}, err
		case named == "":
			return quota.Place{Dirs: []string{spec}}, nil
		case isDir:
			return quota.Place{}, fmt.Errorf("quota: %q: more than one thing has this name; write one of ./%s, %s", spec, spec, named)
		}
		spec = named
	}
	t, err := a.target(ctx, spec)
	if err != nil {
		return quota.Place{}, err
	}
	return a.containerPlace(t)
}

// containerCalled spells the container that a bare name is of, or "".
func (a *app) containerCalled(ctx context.Context, name string) (string, error) {
	h, err := a.io()
	var none *cgroupfs.Unsupported
	if errors.As(err, &none) {
		return "", nil // a host without limits has no such targets
	}
	if err != nil {
		return "", err
	}
	t, err := target.Resolve(ctx, a.kindsWithFiles(h), name)
	var notFound *target.NotFound
	if errors.As(err, &notFound) {
		return "", nil
	}
	var stopped *target.StoppedError
	if errors.As(err, &stopped) {
		return stopped.Target, nil
	}
	return t.String(), err
}

func (a *app) kindsWithFiles(h *cgroupfs.Hierarchy) []target.Kind {
	var kinds []target.Kind
	for _, k := range a.kinds(h) {
		if slices.Contains(withFiles, k.Name()) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// containerPlace finds what a container has changed in its image: the upper directory of
// its root, and the directory beside that which overlayfs makes files in before they are
// moved there.
func (a *app) containerPlace(t target.Target) (quota.Place, error) {
	p := quota.Place{Name: t.String(), Lasting: t.Lasting}
	if len(t.Firsts) == 0 {
		return p, fmt.Errorf("quota: %s has no running process, so weir cannot tell where its files are", t)
	}
	mounts, err := blkdev.New("/").Mounts(t.Firsts[0])
	if err != nil {
		return p, err
	}
	i := slices.IndexFunc(mounts, func(m blkdev.Mount) bool { return m.Point == "/" })
	if i < 0 {
		return p, fmt.Errorf("quota: %s: its first process has no root directory here", t)
	}
	its := mounts[i]
	// What a process has mounted itself can name any directory of the host: only a mount that
	// the host has too is believed.
	host, err := blkdev.New("/").Mounts(0)
	if err != nil {
		return p, err
	}
	i = slices.IndexFunc(host, func(m blkdev.Mount) bool { return m.Number == its.Number && m.FSType == its.FSType })
	if i < 0 {
		return p, fmt.Errorf("quota: %s: the root directory of its first process is not mounted on this host, so weir cannot tell which files are its own; name a directory that only it writes to", t)
	}
	root := host[i]
	upper, has := root.SuperOption("upperdir")
	work, _ := root.SuperOption("workdir")
	if root.FSType != "overlay" || !has {
		return p, &cgroupfs.Unsupported{Feature: "quota of " + t.String(), Reason: fmt.Sprintf("its root is %s, which is no overlay with an upper directory of its own", root.FSType),
			Remedy: "name a directory that only it writes to"}
	}
	for _, dir := range []string{upper, work} {
		if !filepath.IsAbs(dir) {
			return p, fmt.Errorf("quota: %s: its upper directory %s is a relative path; name it by its full path on this host", t, dir)
		}
		if blkdev.ThroughProcess(dir) {
			return p, fmt.Errorf("quota: %s: its upper directory %s was an open directory of the process that mounted it; name it by its full path on this host", t, dir)
		}
		p.Dirs = append(p.Dirs, dir)
	}
	return p, nil
}

// quotaOnRecord finds what a quota is on that may be there no more.
func (a *app) quotaOnRecord(ctx context.Context, spec string) (quota.Place, error) {
	if project, err := strconv.ParseUint(spec, 10, 32); err == nil && project > 0 {
		return quota.Place{Project: uint32(project)}, nil
	}
	p, err := a.quotaPlace(ctx, spec)
	var stopped *target.StoppedError
	var notFound *target.NotFound
	var none *target.NoKindError
	switch {
	case errors.As(err, &stopped):
		return quota.Place{Name: spec, Lasting: stopped.Lasting}, nil
	case errors.As(err, &notFound), errors.As(err, &none):
		return quota.Place{Name: spec}, nil
	}
	return p, err
}

// refuseVolume returns an error for a directory on a weir volume.
func (a *app) refuseVolume(ctx context.Context, s quota.Store, spec string, p quota.Place) error {
	volumes := a.volumes(nil)
	all, _ := volumes.List() // one that cannot be read is no reason against any other place
	if len(all) == 0 {
		return nil
	}
	var on blkdev.Number
	if m, err := s.On(ctx, p.Dirs[0]); err == nil {
		on = m.Number
	}
	for _, v := range all {
		at, err := volumes.Where(v)
		if v.Adopted() || v.Name != spec && (err != nil || !at.Up || at.Device != on) {
			continue
		}
		return cli.Usagef("quota: %s is on the volume %s, which has a size of its own: weir volume resize %s --size SIZE", spec, v.Name, v.Name)
	}
	return nil
}

// completeQuota completes a container, or leaves it to the shell to complete a directory.
func (a *app) completeQuota(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if kindOf(typed, withFiles) != "" {
		return a.completeTarget(cmd, args, typed)
	}
	return nil, cobra.ShellCompDirectiveFilterDirs
}
