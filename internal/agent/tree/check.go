package tree

import (
	"errors"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// isThere fails with ErrGone if the root's path leads to it no longer. (An open directory can be
// used after its end.)
func (t *Tree) isThere() error {
	var now, root unix.Stat_t
	if err := unix.Fstat(t.root, &root); err != nil {
		return &fs.PathError{Op: "stat", Path: t.dir, Err: err}
	}
	switch err := unix.Stat(t.dir, &now); {
	case isGone(err):
		return ErrGone
	case err != nil:
		return &fs.PathError{Op: "stat", Path: t.dir, Err: err}
	case now.Dev != root.Dev || now.Ino != root.Ino:
		return ErrGone
	}
	return nil
}

// check compares a known group with what is there now.
func (t *Tree) check(n *node) error {
	names, is, err := t.look(n)
	switch {
	case err != nil && n == t.top:
		return err
	case isGone(err):
		t.missed(n)
		return nil
	case err != nil: // no rights, or something is mounted there: as add left it
		return nil
	case !is && n.watch != noWatch:
		above, name := n.above, n.name // another group has the name now
		t.missed(n)
		return t.discover(above, name)
	}
	var errs []error
	for name, child := range n.below {
		if !slices.Contains(names, name) {
			t.missed(child)
		}
	}
	for _, name := range names {
		if n.gone {
			break
		}
		if child := n.below[name]; child != nil {
			errs = append(errs, t.check(child))
		} else {
			errs = append(errs, t.discover(n, name))
		}
	}
	return errors.Join(errs...)
}

// missed drops a group whose end no event has told of yet.
func (t *Tree) missed(n *node) {
	before, path := len(t.events), n.path()
	t.drop(n)
	t.found[change{Ended, path}] += len(t.events) - before
}

// discover adds a group that no event has told of yet.
func (t *Tree) discover(above *node, name string) error {
	before, path := len(t.events), (&node{above: above, name: name}).path()
	err := t.add(above, name)
	if changes := len(t.events) - before; changes > 0 {
		t.found[change{Born, path}] += changes
	}
	return err
}
