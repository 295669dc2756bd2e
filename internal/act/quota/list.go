package quota

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A Status is a project's bounds beside what it has.
type Status struct {
	Project uint32   `json:"project"`
	Target  string   `json:"target,omitempty"` // what weir set it on, or the name that people gave it
	By      string   `json:"by"`               // "weir", or "unknown"
	Lasting string   `json:"-"`                // a container's name for good
	Paths   []string `json:"paths"`            // known to weir
	Mount   string   `json:"mount"`
	FSType  string   `json:"fstype"`
	State   string   `json:"state"` // "set"; "interrupted", "under way", "gone" (its directories are), "not mounted": weir's alone
	Bounds  Bounds   `json:"limit"`
	Usage   Usage    `json:"used"`
}

// States of quotas that weir set, beside isSet.
const (
	interrupted = "interrupted"
	underWay    = "under way"   // another weir is working on it
	isGone      = "gone"        // its directories are
	notMounted  = "not mounted" // nor is what it is on
)

func (c *claimed) status(b Bounds, u Usage) Status {
	st := statusOf(c.record, b, u)
	st.FSType = c.fs.mount.FSType
	return st
}

func statusOf(r record, b Bounds, u Usage) Status {
	st := Status{Project: r.Project, Target: r.String(), By: "weir", Lasting: r.Lasting, Paths: []string{}, Mount: r.Mount, State: isSet, Bounds: b, Usage: u}
	for _, t := range r.Trees {
		st.Paths = append(st.Paths, t.Path)
	}
	return st
}

// statusOn is the status of a quota on record, on the file system that it is on.
func (s Store) statusOn(f *fileSystem, r record, b Bounds, u Usage) Status {
	st := statusOf(r, b, u)
	st.Mount, st.FSType, st.State = f.mount.Point, f.mount.FSType, s.stateOf(r, true)
	return st
}

// List finds all projects with limits, and all recorded quotas. A file system that cannot be
// read is in the error, beside the others.
func (s Store) List(ctx context.Context) ([]Status, error) {
	recs, unread := s.records()
	names, err := s.projectNames()
	if err != nil {
		return nil, err
	}
	mounts, err := s.Devices.Mounts(0)
	if err != nil {
		return nil, err
	}
	all := []Status{}
	errs := []error{unread}
	asked, listed := map[blkdev.Number]bool{}, map[uint32]bool{}
	for _, m := range mounts {
		if !hasProjects(m.FSType) || asked[m.Number] {
			continue
		}
		f, err := s.openMount(ctx, m)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue // hidden by another mount, or a file: perhaps it is mounted elsewhere too
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		asked[m.Number] = true
		some, err := s.listOn(f, recs, names)
		errs = append(errs, err)
		for _, st := range some {
			listed[st.Project] = listed[st.Project] || st.By == "weir"
		}
		all = append(all, some...)
		f.close()
	}
	for _, r := range recs {
		if !listed[r.Project] {
			st := statusOf(r, Bounds{}, Usage{})
			st.State = s.stateOf(r, false)
			all = append(all, st)
		}
	}
	slices.SortStableFunc(all, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Mount, b.Mount), cmp.Compare(a.Project, b.Project))
	})
	return all, errors.Join(errs...)
}

// listOn finds the projects of a file system.
func (s Store) listOn(f *fileSystem, recs []record, names map[uint32]string) ([]Status, error) {
	counts, _, err := f.state()
	if err != nil || !counts {
		return nil, err
	}
	var all []Status
	for id := uint32(1); ; id++ {
		d, found, err := f.next(id)
		if err != nil || !found {
			return all, err
		}
		id = d.id
		b, u := d.read()
		st := Status{Project: id, Target: names[id], By: "unknown", Paths: []string{}, Mount: f.mount.Point, FSType: f.mount.FSType, State: isSet, Bounds: b, Usage: u}
		i := slices.IndexFunc(recs, func(r record) bool { return r.Project == id && r.FS == f.id })
		if i >= 0 {
			st = s.statusOn(f, recs[i], b, u)
		}
		if b != (Bounds{}) || i >= 0 {
			all = append(all, st)
		}
		if id == 1<<32-1 {
			return all, nil
		}
	}
}

// stateOf returns the state of a recorded quota; known reports whether its file system has been
// read.
func (s Store) stateOf(r record, known bool) string {
	if r.State != isSet {
		if s.isHeld(r.Project) {
			return underWay
		}
		return interrupted
	}
	for _, t := range r.Trees {
		var st unix.Stat_t
		if err := unix.Lstat(t.Path, &st); err == nil && st.Ino == t.Inode {
			return isSet
		}
	}
	if !known {
		return notMounted
	}
	return isGone
}

// Of finds the quota that a directory is in, whoever set it. Without one the project is 0.
func (s Store) Of(ctx context.Context, dir string) (Status, error) {
	t, err := openTop(dir)
	if err != nil {
		return Status{}, err
	}
	defer t.Close()
	f, err := s.fileSystemOf(ctx, t.File)
	if err != nil {
		return Status{}, err
	}
	defer f.close()
	recs, unread := s.records()
	if errors.Is(unread, os.ErrPermission) {
		unread = nil
	}
	a, err := attrOf(f.kernel, t.File)
	if err != nil {
		return Status{}, err
	}
	st := Status{By: "unknown", Paths: []string{}, Mount: f.mount.Point, FSType: f.mount.FSType, State: isSet}
	if st.Project = a.project; a.project == 0 {
		// Setting was interrupted before that directory was marked, or clearing after it was
		// unmarked.
		if i := slices.IndexFunc(recs, func(r record) bool { return r.has(t.Tree) && r.FS == f.id }); i >= 0 {
			b, u, err := f.get(recs[i].Project)
			return s.statusOn(f, recs[i], b, u), err
		}
		return st, nil
	}
	b, u, err := f.get(a.project)
	if err != nil {
		return Status{}, err
	}
	if i := slices.IndexFunc(recs, func(r record) bool { return r.Project == a.project && r.FS == f.id }); i >= 0 {
		return s.statusOn(f, recs[i], b, u), nil
	}
	names, err := s.projectNames()
	st.Target, st.Bounds, st.Usage = names[a.project], b, u
	return st, errors.Join(err, unread) // it may be that one
}
