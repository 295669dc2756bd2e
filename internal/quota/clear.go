package quota

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// A NotSetError means that weir has no quota there.
type NotSetError struct{ What string }

func (e *NotSetError) Error() string {
	return fmt.Sprintf("quota on %s: weir has set none; weir quota show lists all there are", e.What)
}

// Clear lifts the quota of a place, whose directories may be gone, and unmarks its files.
// When it is interrupted, calling it again goes on. It returns what the quota was, and how
// many files have the project still: they were moved to where weir does not know of.
func (s Store) Clear(ctx context.Context, p Place, tell Progress) (was Status, left uint64, err error) {
	c, err := s.claimRecord(ctx, p)
	if err != nil {
		return Status{}, 0, err
	}
	defer c.close()
	had, usage, err := c.fs.get(c.Project)
	if err != nil {
		return Status{}, 0, err
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

// Forget removes a quota from what is on record, and touches no file.
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
	all, err := s.records()
	if err != nil {
		return r, nil, err
	}
	if r, err = s.recorded(p, all); err != nil {
		return r, nil, err
	}
	release, free, err := s.hold(r.Project)
	if err == nil && !free {
		err = atIt(p)
	}
	return r, release, err
}

// atIt is the error for a quota that another weir holds.
func atIt(p Place) error {
	return fmt.Errorf("quota on %s: another weir is at it; wait until it is done", p)
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
	// What is moved meanwhile, to where was unmarked already, is found the next time.
	for range passes {
		_, usage, err := c.fs.get(c.Project)
		if err != nil {
			return err
		}
		if _, err := c.mark(ctx, newMarker(c.Project, true), int(usage.Files), tell); err != nil {
			return err
		}
		if _, usage, err = c.fs.get(c.Project); err != nil {
			return err
		}
		if usage.Files == 0 {
			break
		}
	}
	return s.forget(c.Project)
}

// passes are how often a tree is gone through that has marked files still: some that were
// deleted are open, and some were moved away.
const passes = 2

// claimRecord holds a quota that is on record, and opens those of its directories that are
// there.
func (s Store) claimRecord(ctx context.Context, p Place) (c *claimed, err error) {
	r, release, err := s.holdRecord(ctx, p)
	if err != nil {
		return nil, err
	}
	c = &claimed{record: r, release: release}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for _, tree := range r.Trees {
		t, err := openTop(tree.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return c, err
		}
		if !s.isStill(ctx, t, tree, r) {
			_ = t.Close() // it was only looked at
			continue
		}
		c.tops = append(c.tops, t)
	}
	c.fs, err = s.fileSystemOfRecord(ctx, c)
	return c, err
}

// isStill reports whether a directory is the one that a quota was set on, or at least has
// its project. Another one may have its name now, or another disk be mounted there.
func (s Store) isStill(ctx context.Context, t *top, was Tree, r record) bool {
	var err error
	if t.attr, err = attrOf(t.File); err != nil {
		return false // a file system without projects
	}
	if t.attr.project == r.Project {
		return true
	}
	f, err := s.fileSystemOf(ctx, t.File)
	if err != nil {
		return false
	}
	defer f.close()
	return t.Inode == was.Inode && t.attr.project == 0 && f.mount.Point == r.Mount
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
		if m.Point == c.Mount && can(m.FSType) {
			return s.openMount(ctx, m)
		}
	}
	return nil, fmt.Errorf("quota on %s: %s, which it is on, is not mounted; mount it first", c.record, c.Mount)
}

// recorded finds the quota of a place on record.
func (s Store) recorded(p Place, all []record) (record, error) {
	var paths []string
	for _, dir := range p.Dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return record{}, fmt.Errorf("quota on %s: %w", dir, err)
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		paths = append(paths, path)
	}
	// A removed container may have had the name of one that is there.
	for _, is := range []func(r record) bool{
		func(r record) bool { return p.Lasting != "" && r.Lasting == p.Lasting },
		func(r record) bool {
			return slices.ContainsFunc(r.Trees, func(t Tree) bool { return slices.Contains(paths, t.Path) })
		},
		func(r record) bool { return p.Name != "" && r.Name == p.Name },
	} {
		if i := slices.IndexFunc(all, is); i >= 0 {
			return all[i], nil
		}
	}
	for _, path := range paths {
		if err := s.isForeign(path, all); err != nil {
			return record{}, err
		}
	}
	return record{}, &NotSetError{p.String()}
}

// isForeign gives the error for a directory that is in a project without a record.
func (s Store) isForeign(path string, all []record) error {
	t, err := openTop(path)
	if err != nil {
		return err
	}
	defer t.Close()
	if t.attr, err = attrOf(t.File); err != nil || t.attr.project == 0 {
		return nil // a file system without projects has none either
	}
	return s.foreign(t, all)
}
