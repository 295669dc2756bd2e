package quota

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
)

// A Finder finds the directories that a quota is asked for on.
type Finder struct {
	Devices blkdev.FS // of the host
	// Kinds returns the host's kinds of targets. It is called only if a place may be a target. An
	// *fault.Unsupported error says that the host has no targets.
	Kinds func() ([]targets.Kind, error)
}

// Place finds the directories of a place: a directory, a container as a target is spelled, or a
// container's bare name. A target without files of its own is a *SpecError. A container that is
// not running is a *targets.StoppedError. Whether a directory exists is not checked.
func (f Finder) Place(ctx context.Context, spec string) (Place, error) {
	kind, isTarget := targets.KindOf(spec)
	if isTarget && !kind.Files {
		return Place{}, &SpecError{fmt.Sprintf("%s has no directory of its own; name a directory, or a container (%s:NAME)", spec, strings.Join(withFiles(), ":NAME, "))}
	}
	if !isTarget {
		if strings.Contains(spec, "/") || spec == "." || spec == ".." {
			return Place{Dirs: []string{spec}}, nil
		}
		named, err := f.called(ctx, spec)
		switch {
		case err != nil:
			return Place{}, err
		case named == "":
			return Place{Dirs: []string{spec}}, nil
		case isDir(spec):
			return Place{}, fmt.Errorf("quota: %q: more than one thing has this name; write one of ./%s, %s", spec, spec, named)
		}
		spec = named
	}
	kinds, err := f.Kinds()
	if err != nil {
		return Place{}, err
	}
	t, err := targets.Resolve(ctx, kinds, spec)
	if err != nil {
		return Place{}, err
	}
	return f.Of(t)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// withFiles are the names of the kinds whose targets have files of their own.
func withFiles() []string {
	var names []string
	for _, d := range targets.Descriptions() {
		if d.Files {
			names = append(names, d.Name)
		}
	}
	return names
}

// called spells the container that a bare name is of, or "".
func (f Finder) called(ctx context.Context, name string) (string, error) {
	kinds, err := f.Kinds()
	if fault.ClassOf(err) == fault.NotPossible {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	with := withFiles()
	kinds = slices.DeleteFunc(slices.Clone(kinds), func(k targets.Kind) bool { return !slices.Contains(with, k.Name()) })
	t, err := targets.Resolve(ctx, kinds, name)
	var notFound *targets.NotFound
	if errors.As(err, &notFound) {
		return "", nil
	}
	var stopped *targets.StoppedError
	if errors.As(err, &stopped) {
		return stopped.Target, nil
	}
	return t.String(), err
}

// Of finds what a container has changed in its image: the upper directory of its root, and the
// directory beside that in which overlayfs makes files before it moves them there. A container
// whose root is no overlay is a *fault.Unsupported.
func (f Finder) Of(t targets.Target) (Place, error) {
	p := Place{Name: t.String(), Lasting: t.Lasting}
	if len(t.Firsts) == 0 {
		return p, fmt.Errorf("quota: %s has no running process, so weir cannot tell where its files are", t)
	}
	mounts, err := f.Devices.Mounts(t.Firsts[0])
	if err != nil {
		return p, err
	}
	host, err := f.Devices.Mounts(0)
	if err != nil {
		return p, err
	}
	p.Dirs, err = changedBy(t, mounts, host)
	return p, err
}

// changedBy finds the directories of a target's root among its own mounts and the host's. What a
// process has mounted itself can name any directory of the host, so weir believes only a mount
// that the host has too.
func changedBy(t targets.Target, its, host []blkdev.Mount) ([]string, error) {
	i := slices.IndexFunc(its, func(m blkdev.Mount) bool { return m.Point == "/" })
	if i < 0 {
		return nil, fmt.Errorf("quota: %s: weir does not see the root directory of its first process, which may have just ended; try again, or name a directory that only it writes to", t)
	}
	own := its[i]
	i = slices.IndexFunc(host, func(m blkdev.Mount) bool { return m.Number == own.Number && m.FSType == own.FSType })
	if i < 0 {
		return nil, fmt.Errorf("quota: %s: the root directory of its first process is not mounted on this host, so weir cannot tell which files are its own; name a directory that only it writes to", t)
	}
	root := host[i]
	upper, has := root.SuperOption("upperdir")
	work, _ := root.SuperOption("workdir")
	if root.FSType != "overlay" || !has {
		return nil, &fault.Unsupported{Feature: "quota of " + t.String(), Reason: fmt.Sprintf("its root is %s, which is no overlay with an upper directory of its own", root.FSType),
			Remedy: "name a directory that only it writes to"}
	}
	for _, dir := range []string{upper, work} {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("quota: %s: its upper directory %s is a relative path; name it by its full path on this host", t, dir)
		}
		if blkdev.ThroughProcess(dir) {
			return nil, fmt.Errorf("quota: %s: its upper directory %s was an open directory of the process that mounted it; name it by its full path on this host", t, dir)
		}
	}
	return []string{upper, work}, nil
}

// OnRecord finds a place that may be gone, of which there may be a record: also a container that
// is not running or was removed, or the number of a project.
func (f Finder) OnRecord(ctx context.Context, spec string) (Place, error) {
	if project, err := strconv.ParseUint(spec, 10, 32); err == nil && project > 0 {
		return Place{Project: uint32(project)}, nil
	}
	p, err := f.Place(ctx, spec)
	var stopped *targets.StoppedError
	var notFound *targets.NotFound
	var none *targets.NoKindError
	switch {
	case errors.As(err, &stopped):
		return Place{Name: spec, Lasting: stopped.Lasting}, nil
	case errors.As(err, &notFound), errors.As(err, &none):
		return Place{Name: spec}, nil
	}
	return p, err
}

// At finds the quota that a place is in, or the recorded one of a container that is not running.
// Without a quota there is none in the answer, and no error.
func (s Store) At(ctx context.Context, f Finder, spec string) ([]Status, error) {
	p, err := f.Place(ctx, spec)
	var stopped *targets.StoppedError
	if errors.As(err, &stopped) {
		all, err := s.List(ctx)
		for _, st := range all {
			if st.Lasting != "" && st.Lasting == stopped.Lasting {
				return []Status{st}, nil
			}
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	st, err := s.Of(ctx, p.Dirs[0])
	if err != nil || st.Project == 0 {
		return nil, err
	}
	if st.Target == "" {
		st.Target = spec
	}
	return []Status{st}, nil
}

// SpaceOf finds the quota that a target's files are in. There is none if the target has no files
// of its own, if it is in no project with limits, or if that cannot be read.
func (s Store) SpaceOf(ctx context.Context, f Finder, t targets.Target) *Status {
	if kind, ok := targets.KindOf(t.String()); !ok || !kind.Files {
		return nil
	}
	p, err := f.Of(t)
	if err != nil {
		return nil
	}
	st, err := s.Of(ctx, p.Dirs[0])
	if err != nil || st.Bounds == (Bounds{}) {
		return nil
	}
	return &st
}
