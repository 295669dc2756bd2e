package quota

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/state"
)

// Dir is where the records are. They outlive boots, as what they speak of does.
const Dir = "/var/lib/weir/quotas"

// A Store has the quotas of this host.
type Store struct {
	Dir     string // of the records
	Devices blkdev.FS
	Names   string // /etc/projid, where people name projects

	standIn kernel // stands in for the kernel in tests; nil: that which weir runs on
}

func (s Store) kernel() kernel {
	if s.standIn != nil {
		return s.standIn
	}
	return running{}
}

// A Tree is a directory and all that is below it.
type Tree struct {
	Path  string
	Inode uint64
}

// treeInJSON is a Tree in a record: the path can be of any bytes.
type treeInJSON struct {
	Path  rawtext.Text `json:"path"`
	Inode uint64       `json:"inode"`
}

// MarshalJSON implements json.Marshaler.
func (t Tree) MarshalJSON() ([]byte, error) {
	return json.Marshal(treeInJSON{rawtext.Text(t.Path), t.Inode})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Tree) UnmarshalJSON(data []byte) error {
	var j treeInJSON
	err := json.Unmarshal(data, &j)
	t.Path, t.Inode = string(j.Path), j.Inode
	return err
}

// A record is a quota that weir has set, or is at.
type record struct {
	Project uint32 `json:"project"`
	Name    string `json:"name,omitempty"`    // of the target, as the user spelled it; empty: the directory
	Lasting string `json:"lasting,omitempty"` // the target's name for good
	Trees   []Tree `json:"trees"`
	Mount   string `json:"mount"`
	FS      string `json:"fs"` // which file system it is, wherever it is mounted
	State   string `json:"state"`
	New     bool   `json:"new,omitempty"` // it was never set whole
	// Lent is whether the project is that which a container's engine has given it: only the
	// bounds are weir's.
	Lent bool `json:"lent,omitempty"`
}

// recordFields are a record's, without its methods.
type recordFields record

// recordInJSON is a record in its file: where its file system is mounted can be of any bytes.
type recordInJSON struct {
	recordFields
	Mount rawtext.Text `json:"mount"`
}

// MarshalJSON implements json.Marshaler.
func (r record) MarshalJSON() ([]byte, error) {
	return json.Marshal(recordInJSON{recordFields(r), rawtext.Text(r.Mount)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *record) UnmarshalJSON(data []byte) error {
	var j recordInJSON
	err := json.Unmarshal(data, &j)
	*r = record(j.recordFields)
	r.Mount = string(j.Mount)
	return err
}

// The states of a quota.
const (
	isSet    = "set"
	setting  = "setting"
	clearing = "clearing"
)

// String names what the quota is on.
func (r record) String() string {
	if r.Name != "" {
		return r.Name
	}
	return r.Trees[0].Path
}

// has reports whether a directory is the topmost of one of the record's trees.
func (r record) has(t Tree) bool { return slices.Contains(r.Trees, t) }

// hasInode reports whether it is the topmost of one, whatever it is called by now.
func (r record) hasInode(inode uint64) bool {
	return slices.ContainsFunc(r.Trees, func(t Tree) bool { return t.Inode == inode })
}

// fileOf names the files of a project's record.
func fileOf(project uint32) string { return strconv.FormatUint(uint64(project), 10) }

func (s Store) path(project uint32) string { return s.store().Path(fileOf(project) + state.Ready) }

func (s Store) store() state.Store[record] {
	return state.Store[record]{
		Folder: state.Folder{Dir: s.Dir, Mode: 0o700},
		Name:   func(r record) string { return fileOf(r.Project) },
		Check: func(r record) error {
			if len(r.Trees) == 0 {
				return errors.New("it names no directory")
			}
			return nil
		},
	}
}

// records reads all records. One that cannot be read is in the error, beside the others.
func (s Store) records() ([]record, error) {
	all, err := s.store().List(state.Ready)
	if err != nil {
		return all, fmt.Errorf("quotas: %w", err)
	}
	return all, nil
}

// save puts a quota on record.
func (s Store) save(r record) error {
	if err := s.store().Save(r, state.Ready); err != nil {
		return fmt.Errorf("record the quota of %s: %w", r, err)
	}
	return nil
}

// lock keeps other weirs from choosing projects until unlock is called.
func (s Store) lock(ctx context.Context) (unlock func(), err error) {
	lock, err := s.store().Lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("record quotas: %w", err)
	}
	return lock.Unlock, nil
}

// hold takes a project for the caller: free is false if another weir is working on it. It is called
// with the store locked.
func (s Store) hold(project uint32) (release func(), free bool, err error) {
	lock, err := s.store().Hold(fileOf(project))
	if err != nil || lock == nil {
		return nil, false, err
	}
	return lock.Unlock, true, nil
}

// isHeld reports whether a weir is at a project.
func (s Store) isHeld(project uint32) bool {
	return s.store().IsHeld(fileOf(project))
}

// forget removes the record of a locked project.
func (s Store) forget(project uint32) error {
	unlock, err := s.lock(context.Background())
	if err != nil {
		return err
	}
	defer unlock()
	if err := s.store().Forget(fileOf(project)); err != nil {
		return fmt.Errorf("forget quota: %w", err)
	}
	return nil
}

// weir uses projects from firstProject on, far apart: Docker and Podman count on from the
// highest project that they find around their layers, and would collide with weir's next one.
// Users' own projects begin at 1, and Kubernetes's at 1048577.
const (
	firstProject = 1 << 30
	apart        = 1 << 16
	projects     = 1 << 14
)

// freeProject finds an unused project: it is not on record, has no name, and has neither files
// nor limits on the file system. It is called with the store locked.
// The search begins at a number that the directory and its disk make, so that disks of several
// hosts get different projects, and a dry run names the one that is used then.
func (s Store) freeProject(f *fileSystem, inode uint64, taken []record) (uint32, error) {
	used := map[uint32]bool{}
	for _, r := range taken {
		used[r.Project] = true
	}
	names, err := s.projectNames()
	if err != nil {
		return 0, err
	}
	sum := fnv.New32a()
	_, _ = fmt.Fprint(sum, f.id, inode) // it takes all
	begin := sum.Sum32() % projects
	for i := range uint32(projects) {
		id := firstProject + (begin+i)%projects*apart
		if _, err := os.Lstat(s.path(id)); used[id] || names[id] != "" || err == nil { // also of a record that cannot be read
			continue
		}
		d, found, err := f.next(id)
		if err != nil {
			return 0, err
		}
		if !found || d.id != id {
			return id, nil
		}
	}
	return 0, fault.With(fmt.Errorf("quota on %s: all %d numbers that weir gives to projects are in use; remove a quota that nobody needs", f.mount.Point, projects), fault.Remedy{Do: fault.QuotaList})
}

// projectNames reads what people call projects: lines of NAME:NUMBER (projid(5)).
func (s Store) projectNames() (map[uint32]string, error) {
	text, err := os.ReadFile(s.Names)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the names of projects: %w", err)
	}
	names := map[uint32]string{}
	for line := range strings.Lines(string(text)) {
		name, number, ok := strings.Cut(strings.TrimSpace(line), ":")
		id, err := strconv.ParseUint(strings.TrimSpace(number), 10, 32)
		if ok && err == nil && !strings.HasPrefix(name, "#") {
			names[uint32(id)] = name
		}
	}
	return names, nil
}
