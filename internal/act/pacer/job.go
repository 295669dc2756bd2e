package pacer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// A Job is a group that the pacer holds, as in its record and in requests.
type Job struct {
	Limited Place           `json:"limited"`          // the group with the kernel's rules
	Cell    Place           `json:"cell,omitzero"`    // one that is made first: a command is to be born in it (see CellsFor)
	Devices []blkdev.Number `json:"devices"`          // those that the limit is on
	WBPS    uint64          `json:"wbps"`             // bytes a second, of all of them together
	Missed  string          `json:"missed,omitempty"` // whom the pacer cannot stop, or not count, in its record
	Count   string          `json:"count,omitempty"`  // what is counted: all that is written is CountWritten
	// KeptIn are files in which the group's owner keeps its limit: if the group goes, the pacer
	// holds the next group of its name, as long as one of the files exists.
	KeptIn []string `json:"kept_in,omitempty"`
	// Lapsed is why the group is not held now, in its record; empty: the pacer holds it.
	Lapsed string `json:"lapsed,omitempty"`
}

// CountWritten makes the pacer count all writes of the group's processes that the kernel's
// rules do not see.
const CountWritten = ""

// A Place names a group: its hierarchy, by a controller of v1 or "" for cgroup2, and its path.
type Place struct {
	Controller string
	Path       string
}

// inJSON is a Place in a record or a request: the path can be of any bytes.
type inJSON struct {
	Controller string       `json:"controller,omitempty"`
	Path       rawtext.Text `json:"path"`
}

// MarshalJSON implements json.Marshaler.
func (p Place) MarshalJSON() ([]byte, error) {
	return json.Marshal(inJSON{p.Controller, rawtext.Text(p.Path)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Place) UnmarshalJSON(data []byte) error {
	var j inJSON
	err := json.Unmarshal(data, &j)
	p.Controller, p.Path = j.Controller, string(j.Path)
	return err
}

func (p Place) String() string { return p.Controller + ":" + p.Path }

// PlaceOf names a group for a record. controller is one of its hierarchy's controllers on v1.
func PlaceOf(g cgroupfs.Group, controller string) Place {
	if g.Hierarchy().Version == cgroupfs.V2 {
		controller = ""
	}
	return Place{controller, g.Path()}
}

// Holds reports whether a place is the other place, or above it.
func (p Place) Holds(other Place) bool {
	return p.Controller == other.Controller && (p.Path == "/" || p.Path == other.Path || strings.HasPrefix(other.Path, p.Path+"/"))
}

// Find finds the group of a place.
func (p Place) Find(fs *cgroupfs.FS) (cgroupfs.Group, error) {
	h := fs.Unified()
	if p.Controller != "" {
		h = fs.With(p.Controller)
	}
	if h == nil {
		return cgroupfs.Group{}, fmt.Errorf("find cgroup %s: no hierarchy has %q", p.Path, p.Controller)
	}
	return h.Group(p.Path)
}

// check refuses impossible requests.
func (j Job) check() error {
	if j.WBPS == 0 || len(j.Devices) == 0 || j.Limited.Path == "" {
		return fmt.Errorf("pace cgroup %q: a limit, a device or a group is missing", j.Limited.Path)
	}
	if j.Count != CountWritten && j.Count != CountEscaped {
		return fmt.Errorf("pace cgroup %q: this weir does not know how to count %q", j.Limited.Path, j.Count)
	}
	return nil
}

// Cells lists the groups in which the processes of a job are paused, whoever made them.
func (j Job) Cells(fs *cgroupfs.FS) (all []cgroupfs.Group, err error) {
	limited, err := j.Limited.Find(fs)
	if err != nil {
		return nil, err
	}
	from := limited
	if limited.Hierarchy().Version == cgroupfs.V1 {
		h := fs.With(Freezer)
		if h == nil {
			return nil, nil
		}
		from = h.Root()
	}
	name := cgroupfs.CellName(limited)
	err = from.Walk(func(g cgroupfs.Group) error {
		if g.In(name) && !g.Parent().In(name) {
			all = append(all, g)
		}
		return nil
	})
	return all, err
}

// repay ends the loans to a group that a dead pacer has left.
func (j Job) repay(limited cgroupfs.Group) error {
	var errs []error
	for _, d := range j.Devices {
		if err := limited.Repay(d); !cgroupfs.IsGone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Thaw lets the processes of a job go on.
func (j Job) Thaw(fs *cgroupfs.FS) error {
	all, err := j.Cells(fs)
	errs := []error{err}
	if limited, err := j.Limited.Find(fs); err == nil { // else Cells has said so
		errs = append(errs, j.repay(limited))
	}
	for _, g := range all {
		if err := g.Thaw(); !cgroupfs.IsGone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Release resumes the processes of a job and moves them back. Groups that are gone cause no
// error.
func (j Job) Release(fs *cgroupfs.FS) error {
	errs := []error{j.Thaw(fs)}
	all, err := j.Cells(fs)
	errs = append(errs, err)
	for _, g := range all {
		threads := false
		if g.Hierarchy().Version == cgroupfs.V2 {
			if threads, err = g.Threaded(); cgroupfs.IsGone(err) {
				continue
			}
			errs = append(errs, err)
		}
		errs = append(errs, dissolve(g, threads))
	}
	return errors.Join(errs...)
}
