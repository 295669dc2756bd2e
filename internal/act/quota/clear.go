package quota

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/weir-io/weir/internal/fault"
)

// A NotSetError means that weir has no quota there.
type NotSetError struct{ What string }

func (e *NotSetError) Error() string {
	return fmt.Sprintf("quota on %s: weir has set none", e.What)
}

// Class makes it fault.NotFound.
func (e *NotSetError) Class() fault.Class { return fault.NotFound }

// Clear lifts the quota of a place, whose directories may be gone, and unmarks its files.
// When it is interrupted, calling it again goes on. It returns what the quota was, and how
// many files have the project still: what the kernel cannot unmark, as it cannot mark it, and
// what was moved to where weir does not know of.
func (s Store) Clear(ctx context.Context, p Place, tell Progress) (was Status, left uint64, err error) {
	c, err := s.claimRecord(ctx, p)
	if err != nil {
		return Status{}, 0, err
	}
	defer c.close()
	had, usage, err := c.lifted()
	if err != nil {
		return Status{}, 0, err
	}
	if c.isAnothers() {
		return c.status(had, usage), 0, s.forget(c.Project)
	}
	if err := s.takeBack(ctx, c, tell); err != nil {
		return Status{}, 0, err
	}
	if c.Lent {
		return c.status(had, usage), 0, nil
	}
	_, remaining, err := c.fs.get(c.Project)
	return c.status(had, usage), remaining.Files, err
}

// isAnothers reports whether the project may be another container's by now: its engine has lent
// it, and the directories are gone.
func (c *claimed) isAnothers() bool { return len(c.tops) == 0 && c.Lent }

// lifted is what a claimed quota bounds. One whose files weir does not find is refused.
func (c *claimed) lifted() (Bounds, Usage, error) {
	had, usage, err := c.fs.get(c.Project)
	if err == nil && len(c.tops) == 0 && !c.Lent && usage.Files > 0 {
		files := "1 file is"
		if usage.Files > 1 {
			files = fmt.Sprintf("%d files are", usage.Files)
		}
		err = fault.With(fmt.Errorf("quota on %s: the directory was moved, and %s in its project", c.record, files), fault.Remedy{Do: fault.QuotaMoved, Target: fmt.Sprint(c.Project)})
	}
	return had, usage, err
}

// Forget removes the record of a quota, and touches no file.
func (s Store) Forget(ctx context.Context, p Place) (Status, error) {
	r, release, err := s.holdRecord(ctx, p)
	if err != nil {
		return Status{}, err
	}
	defer release()
	return statusOf(r, Bounds{}, Usage{}), s.forget(r.Project)
}

// holdRecord holds a quota that is on record.
func (s Store) holdRecord(ctx context.Context, p Place) (r record, release func(), err error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return r, nil, err
	}
	defer unlock()
	if r, err = s.recordOf(p); err != nil {
		return r, nil, err
	}
	release, free, err := s.hold(r.Project)
	if err == nil && !free {
		err = atIt(p)
	}
	return r, release, err
}

// recordOf is the record of a place.
func (s Store) recordOf(p Place) (record, error) {
	all, unread := s.records()
	r, err := s.recorded(p, all)
	if err != nil {
		return r, errors.Join(err, unread)
	}
	return r, nil
}

// atIt is the error for a quota that another weir holds.
func atIt(p Place) error {
	return fmt.Errorf("quota on %s: another weir is working on it; wait until it is done", p)
}

// takeBack unmarks what a claimed quota is on, and forgets it.
func (s Store) takeBack(ctx context.Context, c *claimed, tell Progress) error {
	c.State = clearing
	if err := s.save(c.record); err != nil {
		return err
	}
	if err := c.fs.bound(c.Project, Bounds{}); err != nil {
		return err
	}
	if c.Lent {
		return s.forget(c.Project)
	}
	// A file that is moved meanwhile, to a place that was unmarked already, is found the next
	// time.
	for range passes {
		_, usage, err := c.fs.get(c.Project)
		if err != nil {
			return err
		}
		marked, err := c.mark(ctx, newMarker(c.fs.kernel, c.Project, true), int(usage.Files), tell)
		if err != nil {
			return err
		}
		if _, usage, err = c.fs.get(c.Project); err != nil {
			return err
		}
		if usage.Files <= uint64(marked.Unable) {
			break
		}
	}
	if err := c.fs.sync(); err != nil {
		return err
	}
	return s.forget(c.Project)
}

// passes are how often a tree is gone through that has marked files still: some that were
// deleted are open, and some were moved away.
const passes = 2

// claimRecord locks a recorded quota, and opens it.
func (s Store) claimRecord(ctx context.Context, p Place) (c *claimed, err error) {
	r, release, err := s.holdRecord(ctx, p)
	if err != nil {
		return nil, err
	}
	return s.openRecord(ctx, p, r, release)
}

// openRecord opens those directories of a recorded quota that exist.
func (s Store) openRecord(ctx context.Context, p Place, r record, release func()) (c *claimed, err error) {
	c = &claimed{record: r, place: p, release: release}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	dirs := r.Trees
	for _, dir := range p.Dirs { // it may have been moved there
		dirs = append(dirs, Tree{Path: dir})
	}
	for _, tree := range dirs {
		t, err := openTop(tree.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return c, err
		}
		if !s.isStill(ctx, t, tree, r) || slices.ContainsFunc(c.tops, func(o *top) bool { return o.Inode == t.Inode }) {
			_ = t.Close() // it was only looked at
			continue
		}
		c.tops = append(c.tops, t)
	}
	c.fs, err = s.fileSystemOfRecord(ctx, c)
	return c, err
}

// isStill reports whether a directory is the one that a quota was set on. Another directory may
// have its name now, or another disk may be mounted there.
func (s Store) isStill(ctx context.Context, t *top, was Tree, r record) bool {
	f, err := s.fileSystemOf(ctx, t.File)
	if err != nil {
		return false
	}
	defer f.close()
	if t.attr, err = attrOf(s.kernel(), t.File); err != nil || f.id != r.FS {
		return false
	}
	return t.attr.project == r.Project || t.attr.project == 0 && t.Inode == was.Inode
}

// fileSystemOfRecord finds where a quota is, also if its directories are gone.
func (s Store) fileSystemOfRecord(ctx context.Context, c *claimed) (*fileSystem, error) {
	if len(c.tops) > 0 {
		return s.fileSystemOf(ctx, c.tops[0].File)
	}
	mounts, err := s.Devices.Mounts(0)
	if err != nil {
		return nil, err
	}
	for _, m := range slices.Backward(mounts) {
		if !hasProjects(m.FSType) {
			continue
		}
		f, err := s.openMount(ctx, m)
		if err != nil {
			continue // hidden, or a file
		}
		if f.id == c.FS {
			return f, nil
		}
		f.close()
	}
	return nil, fault.With(fmt.Errorf("quota on %s: its file system, last mounted at %s, is not mounted", c.record, c.Mount), fault.Remedy{Do: fault.QuotaMount, Target: c.String()})
}

// recorded finds the recorded quota of a place: first by existing directories, then by missing
// ones.
func (s Store) recorded(p Place, all []record) (record, error) {
	var paths []string
	var there []*top
	defer func() {
		for _, t := range there {
			_ = t.Close() // it was only looked at
		}
	}()
	for _, dir := range p.Dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return record{}, fmt.Errorf("quota on %s: %w", dir, err)
		}
		if t, err := openTop(dir); err == nil {
			path, there = t.Path, append(there, t)
			if t.attr, err = attrOf(s.kernel(), t.File); err != nil {
				t.attr.project = 0 // a file system without projects
			}
		}
		paths = append(paths, path)
	}
	for _, is := range []func(r record) bool{
		func(r record) bool { return p.Project != 0 && r.Project == p.Project },
		func(r record) bool { return p.Lasting != "" && r.Lasting == p.Lasting },
		func(r record) bool {
			return slices.ContainsFunc(there, func(t *top) bool { return t.attr.project == r.Project && r.hasInode(t.Inode) })
		},
		func(r record) bool {
			return slices.ContainsFunc(there, func(t *top) bool { return t.attr.project == 0 && r.has(t.Tree) })
		},
		func(r record) bool {
			return slices.ContainsFunc(r.Trees, func(t Tree) bool { return slices.Contains(paths, t.Path) })
		},
		func(r record) bool { return p.Name != "" && r.Name == p.Name },
	} {
		if i := slices.IndexFunc(all, is); i >= 0 {
			return all[i], nil
		}
	}
	for _, t := range there {
		if t.attr.project != 0 {
			return record{}, s.foreign(t, all)
		}
	}
	return record{}, fault.With(&NotSetError{p.String()}, fault.Remedy{Do: fault.QuotaList})
}
