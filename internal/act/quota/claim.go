package quota

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Place is what a quota is on: directories of one file system, first the one that people
// know.
type Place struct {
	Name    string // of the target, as the user spelled it; empty: the directory
	Lasting string // its name for good
	Dirs    []string
	Project uint32 // the number, of one that is on record; 0: not named by it
}

func (p Place) String() string {
	switch {
	case p.Name != "":
		return p.Name
	case p.Project != 0:
		return "project " + strconv.FormatUint(uint64(p.Project), 10)
	}
	return p.Dirs[0]
}

// A claimed quota is held by this weir until release is called.
type claimed struct {
	record
	place Place
	fs    *fileSystem
	tops  []*top
	// untouched is whether it is new, and neither marked nor bounded.
	untouched bool
	release   func()
}

func (c *claimed) close() {
	if c.release != nil {
		c.release()
	}
	for _, t := range c.tops {
		_ = t.Close() // it was only read
	}
	if c.fs != nil {
		c.fs.close()
	}
}

// openPlace opens what a place is, and refuses what can have no quota.
func (s Store) openPlace(ctx context.Context, p Place) (c *claimed, err error) {
	c = &claimed{place: p}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for _, dir := range p.Dirs {
		t, err := openTop(dir)
		if err != nil {
			return c, err
		}
		c.tops = append(c.tops, t)
		f, err := s.fileSystemOf(ctx, t.File)
		if err != nil {
			return c, err
		}
		if c.fs == nil {
			c.fs = f
		} else {
			f.close()
		}
		if f.mount.Number != c.fs.mount.Number {
			return c, fmt.Errorf("quota on %s: %s and %s are on two file systems, and a quota is of one; name one of these directories", p, c.tops[0].Path, t.Path)
		}
	}
	return c, nil
}

// claim finds the quota of a place, or puts a new one on record, and holds it.
func (s Store) claim(ctx context.Context, p Place) (*claimed, error) {
	c, err := s.openPlace(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.claimOpen(ctx, p, c); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (s Store) claimOpen(ctx context.Context, p Place, c *claimed) error {
	if err := c.mayHave(p); err != nil {
		return err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.choose(p, c); err != nil { // now that nobody else chooses projects
		return err
	}
	release, free, err := s.hold(c.Project)
	if err != nil {
		return err
	}
	if !free {
		return atIt(p)
	}
	c.release = release
	if c.State == isSet {
		return nil
	}
	return s.save(c.record)
}

// mayHave refuses a place that can have no quota.
func (c *claimed) mayHave(p Place) error {
	if c.tops[0].isRoot(c.fs) {
		return &SpecError{p.String() + " is a whole file system, which has a size of its own; name a directory in it"}
	}
	return c.fs.mustBound()
}

// choose finds the record of an open place, or makes one of a free project. Its state is isSet
// if all its directories are in the project, and nothing has to be marked.
func (s Store) choose(p Place, c *claimed) (err error) {
	all, _ := s.records() // of one that cannot be read the directories are in a project, and refused for that
	for _, t := range c.tops {
		if t.attr, err = attrOf(s.kernel(), t.File); err != nil {
			return err
		}
	}
	own, err := s.find(p, c, all)
	if err != nil {
		return err
	}
	if own == nil {
		own = &record{State: setting, New: true, Name: p.Name, Lasting: p.Lasting, Mount: c.fs.mount.Point, FS: c.fs.id}
		if own.Project, err = s.freeProject(c.fs, c.tops[0].Inode, all); err != nil {
			return err
		}
	}
	c.record, c.untouched = *own, len(own.Trees) == 0
	if err := c.openRest(); err != nil {
		return err
	}
	var trees []Tree
	for _, t := range c.tops {
		trees = append(trees, t.Tree)
	}
	whole := c.State == isSet && slices.Equal(c.Trees, trees)
	for _, t := range c.tops {
		whole = whole && t.attr.project == c.Project && t.attr.inherit
	}
	if !whole {
		c.Trees, c.State = trees, setting
	}
	return nil
}

// openRest opens the other trees of a quota, such as a container's second one, if they exist.
func (c *claimed) openRest() error {
	for _, tree := range c.Trees {
		if slices.ContainsFunc(c.tops, func(t *top) bool { return t.Inode == tree.Inode }) {
			continue
		}
		t, err := openTop(tree.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if t.attr, err = attrOf(c.fs.kernel, t.File); err != nil || t.Tree != tree || t.attr.project != c.Project {
			_ = t.Close() // another has its name now
			continue
		}
		c.tops = append(c.tops, t)
	}
	return nil
}

// isRoot reports whether a directory is the topmost of its file system.
func (t *top) isRoot(f *fileSystem) bool {
	return t.Path == f.mount.Point && f.mount.Root == "/"
}

// find returns the recorded quota of a place, or nil. It returns an error for directories in
// somebody else's project.
func (s Store) find(p Place, c *claimed, all []record) (*record, error) {
	var own *record
	for _, t := range c.tops {
		i := slices.IndexFunc(all, func(r record) bool {
			return r.FS == c.fs.id && (r.has(t.Tree) && t.attr.project == 0 || r.hasInode(t.Inode) && t.attr.project == r.Project)
		})
		switch {
		case i >= 0 && (own == nil || own.Project == all[i].Project):
			own = &all[i]
		case t.attr.project != 0:
			r, err := s.lent(p, c, all)
			if err == nil && r == nil {
				err = s.foreign(t, all)
			}
			return r, err
		}
	}
	return own, nil
}

// lent returns a quota on the project that a container's engine has given it, if that has no
// bounds: Podman gives each container one, to count what it stores. The engine has marked its
// layer as a whole, the directory that both of the container's are in.
func (s Store) lent(p Place, c *claimed, all []record) (*record, error) {
	id := c.tops[0].attr.project
	layer := filepath.Dir(c.tops[0].Path)
	for _, t := range c.tops {
		if p.Name == "" || t.attr.project != id || filepath.Dir(t.Path) != layer {
			return nil, nil
		}
	}
	for _, r := range all {
		// One of a container that is gone may have had the number.
		if r.Project == id && (!r.Lent || s.stateOf(r, true) != isGone) {
			return nil, nil
		}
	}
	ofLayer, err := projectOf(c.fs.kernel, layer)
	if err != nil {
		return nil, err
	}
	ofOthers, err := projectOf(c.fs.kernel, filepath.Dir(layer))
	if err != nil || ofLayer != id || ofOthers == id {
		return nil, err
	}
	bounds, _, err := c.fs.get(id)
	if err != nil || bounds != (Bounds{}) {
		return nil, err
	}
	return &record{Project: id, State: setting, New: true, Name: p.Name, Lasting: p.Lasting, Mount: c.fs.mount.Point, FS: c.fs.id, Lent: true}, nil
}

func projectOf(k kernel, dir string) (uint32, error) {
	f, err := os.Open(dir)
	if err != nil {
		return 0, fmt.Errorf("quota on %s: %w", dir, err)
	}
	a, err := attrOf(k, f)
	return a.project, errors.Join(err, f.Close())
}

// A ForeignError means that a directory is in a project that is not its own, or not weir's.
type ForeignError struct {
	Path    string
	Project uint32
	Whose   string // "the quota of /srv/data", "called backup in /etc/projid", or ""
	Weir    bool   // it is on weir's record
}

func (e *ForeignError) Error() string {
	whose := ""
	if e.Whose != "" {
		whose = " (" + e.Whose + ")"
	}
	text := fmt.Sprintf("quota on %s: it is in project %d%s already, and a file can be in one project only; weir does not change what others have set", e.Path, e.Project, whose)
	if !e.Weir {
		text += ". If nobody needs that project: chattr -R -P -p 0 " + e.Path
	}
	return text
}

func (s Store) foreign(t *top, all []record) error {
	whose, weirs := s.whose(t.attr.project, all)
	return &ForeignError{t.Path, t.attr.project, whose, weirs}
}

// whose says what is known of a project, and whether weir has it on record.
func (s Store) whose(id uint32, all []record) (words string, weirs bool) {
	for _, r := range all {
		if r.Project == id {
			return "the quota of " + r.String(), true
		}
	}
	names, err := s.projectNames()
	if err == nil && names[id] != "" {
		return "called " + names[id] + " in " + s.Names, false
	}
	return "", false
}

// On reports the mount that a directory is on.
func (s Store) On(ctx context.Context, dir string) (blkdev.Mount, error) {
	t, err := openTop(dir)
	if err != nil {
		return blkdev.Mount{}, err
	}
	defer t.Close()
	f, err := s.fileSystemOf(ctx, t.File)
	if err != nil {
		return blkdev.Mount{}, err
	}
	defer f.close()
	return f.mount, nil
}
