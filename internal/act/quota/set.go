package quota

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/fault"
)

// A Progress is told how many of how many files are done; the total is 0 if it is not known.
type Progress func(what string, files, of int)

// Set limits what a place may store: with new limits, or a change of its limits. Existing files
// count; if they exceed a new limit, Set refuses unless force is true. When ctx ends, or
// anything fails, it takes a new quota back.
func (s Store) Set(ctx context.Context, p Place, change Change, force bool, tell Progress) (Status, Marked, error) {
	c, err := s.claim(ctx, p)
	if err != nil {
		return Status{}, Marked{}, err
	}
	defer c.close()
	marked, bounds, err := s.set(ctx, c, change, force, tell)
	if err != nil {
		switch {
		case c.untouched:
			err = errors.Join(err, s.forget(c.Project))
		case c.New:
			err = errors.Join(err, s.takeBack(context.WithoutCancel(ctx), c, tell))
		}
		return Status{}, marked, err
	}
	_, usage, err := c.fs.get(c.Project)
	return c.status(bounds, usage), marked, err
}

// isWhole reports whether all files of a claimed quota are in its project already.
func (c *claimed) isWhole() bool { return c.State == isSet || c.Lent }

// bounds are what a change makes of the bounds of a claimed quota, and usage is what is stored
// there. What cannot be, and more than is to be stored, is refused.
func (c *claimed) bounds(ctx context.Context, change Change, force bool, tell Progress) (bounds Bounds, usage Usage, err error) {
	had, usage, err := c.fs.get(c.Project)
	if err != nil {
		return had, usage, err
	}
	bounds = change.on(had, c.fs.block)
	if err := change.check(bounds, c.fs.block); err != nil {
		return bounds, usage, err
	}
	if !c.isWhole() {
		if usage, err = c.measure(ctx, tell); err != nil {
			return bounds, usage, err
		}
	}
	return bounds, usage, c.refuse(bounds, usage, force)
}

// refuse refuses bounds that are exceeded already.
func (c *claimed) refuse(b Bounds, u Usage, force bool) error {
	if over := b.over(u); over != "" && !force {
		return fault.With(fmt.Errorf("quota on %s: it %s", c.place, over), fault.Remedy{Do: fault.QuotaForce})
	}
	return nil
}

func (s Store) set(ctx context.Context, c *claimed, change Change, force bool, tell Progress) (Marked, Bounds, error) {
	bounds, usage, err := c.bounds(ctx, change, force, tell)
	if err != nil {
		return Marked{}, bounds, err
	}
	var marked Marked
	if !c.isWhole() {
		c.untouched = false
		if marked, err = c.mark(ctx, newMarker(c.fs.kernel, c.Project, false), int(usage.Files), tell); err != nil {
			return marked, bounds, err
		}
		if _, usage, err = c.fs.get(c.Project); err != nil { // more may have come meanwhile
			return marked, bounds, err
		}
		if err := c.refuse(bounds, usage, force); err != nil {
			return marked, bounds, err
		}
	}
	c.untouched = false
	if err := c.fs.bound(c.Project, bounds); err != nil {
		return marked, bounds, err
	}
	if c.State == isSet {
		return marked, bounds, nil
	}
	if err := c.fs.sync(); err != nil { // what the record says must outlive a power cut too
		return marked, bounds, err
	}
	c.State, c.New = isSet, false
	return marked, bounds, s.save(c.record)
}

// order is that of the trees: files may be moved from the second one, a container's work
// directory, into the first at any time, and must be in the project before that is.
func (c *claimed) order(into bool) []*top {
	if !into {
		return c.tops
	}
	tops := slices.Clone(c.tops)
	slices.Reverse(tops)
	return tops
}

// walk calls visit for each of the trees, with its top directory to read from; into says
// whether they will be in the project afterwards.
func (c *claimed) walk(ctx context.Context, into bool, progress func(files int), visit func(w *walk, top *folder) error) error {
	w := &walk{ctx: ctx, kernel: c.fs.kernel, progress: progress}
	for _, t := range c.order(into) {
		dir, bare, err := alone(t.File)
		if err == nil {
			w.bare = bare
			at := &folder{dir}
			err = errors.Join(visit(w, at), at.Close())
		}
		if err != nil {
			return fmt.Errorf("quota on %s: %w", c.record, err)
		}
	}
	return nil
}

// measure adds up what the trees take now.
func (c *claimed) measure(ctx context.Context, tell Progress) (Usage, error) {
	links := map[uint64]bool{}
	var all Usage
	err := c.walk(ctx, true, func(n int) { tell("counting", n, 0) }, func(w *walk, top *folder) error {
		u, err := w.measure(top, c.Project, links)
		all.Bytes, all.Files = all.Bytes+u.Bytes, all.Files+u.Files
		return err
	})
	return all, err
}

func (c *claimed) mark(ctx context.Context, m marker, of int, tell Progress) (Marked, error) {
	what := "marking"
	if m.off {
		what = "unmarking"
	}
	var all Marked
	err := c.walk(ctx, !m.off, func(n int) { tell(what, n, of) }, func(w *walk, top *folder) error {
		one, err := w.mark(top, m)
		if all.add(one); err == nil && one.Foreign == 1 && one.Files == 0 && !m.off {
			err = errors.New("another program has just moved it to a project of its own; see which one does that, and try again")
		}
		return err
	})
	return all, err
}
