package quota

import (
	"errors"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/hold"
)

// TestStepsAreTheDeed holds the steps of a dry run against what is done then: to the record, to
// files and to the bounds of the project, in this order.
func TestStepsAreTheDeed(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T, d *disk) Place
		steps   func(t *testing.T, d *disk, p Place) ([]hold.Step, error)
		do      func(t *testing.T, d *disk, p Place) error
		kinds   string // of the steps: a record written or removed, a tree marked or unmarked, a limit
	}{
		{"a new quota", aTree, setSteps, doSet, "record mark limit record"},
		{"another limit", setBefore, setSteps, doSet, "limit"},
		{"a file has left", func(t *testing.T, d *disk) Place {
			p := setBefore(t, d)
			delete(d.files, d.inode(p.Dirs[0]))
			return p
		}, setSteps, doSet, "record mark limit record"},
		{"a container", func(_ *testing.T, d *disk) Place { return d.container(0) }, setSteps, doSet, "record mark mark limit record"},
		{"a container that its engine counts", func(_ *testing.T, d *disk) Place { return d.container(4711) }, setSteps, doSet, "record limit record"},
		{"clear", setBefore, clearSteps, doClear, "record limit unmark remove"},
		{"clear of a container", func(_ *testing.T, d *disk) Place {
			p := d.container(0)
			d.set(p, bytes(5e6))
			return p
		}, clearSteps, doClear, "record limit unmark unmark remove"},
		{"clear of one that its engine counts", func(_ *testing.T, d *disk) Place {
			p := d.container(4711)
			d.set(p, bytes(5e6))
			return p
		}, clearSteps, doClear, "record limit remove"},
		{"clear of one that is gone", func(t *testing.T, d *disk) Place {
			p := d.container(4711)
			d.set(p, bytes(5e6))
			if err := os.RemoveAll(d.path("c")); err != nil {
				t.Fatal(err)
			}
			return Place{Lasting: p.Lasting}
		}, clearSteps, doClear, "remove"},
		{"forget", setBefore, func(_ *testing.T, d *disk, p Place) ([]hold.Step, error) { return d.ForgetSteps(p) },
			func(t *testing.T, d *disk, p Place) error {
				_, err := d.Forget(t.Context(), p)
				return err
			}, "remove"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDisk(t)
			d.tree("data")
			p := c.prepare(t, d)
			files, bounds, records := maps.Clone(d.files), maps.Clone(d.bounds), d.onRecord()
			shown, err := c.steps(t, d, p)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(files, d.files) || !maps.Equal(bounds, d.bounds) || !reflect.DeepEqual(records, d.onRecord()) {
				t.Errorf("a dry run did %v, %v, %q", d.files, d.bounds, d.onRecord())
			}
			if again, err := c.steps(t, d, p); err != nil || !reflect.DeepEqual(again, shown) {
				t.Errorf("shown again: %+v, %v", again, err)
			}
			r := d.recordOfStep(shown)
			if err := c.do(t, d, p); err != nil {
				t.Fatal(err)
			}
			r.look()
			if !reflect.DeepEqual(r.steps, shown) {
				t.Errorf("did\n%+v\nshown\n%+v", r.steps, shown)
			}
			if got := kindsOf(shown); got != c.kinds {
				t.Errorf("shown are %q, want %q", got, c.kinds)
			}
		})
	}
}

func aTree(_ *testing.T, d *disk) Place { return at(d.path("data")) }

func setBefore(_ *testing.T, d *disk) Place {
	p := at(d.path("data"))
	d.set(p, bytes(5e6))
	return p
}

func setSteps(t *testing.T, d *disk, p Place) ([]hold.Step, error) {
	return d.SetSteps(t.Context(), p, bytes(10e6), false, quiet)
}

func doSet(t *testing.T, d *disk, p Place) error {
	_, _, err := d.Set(t.Context(), p, bytes(10e6), false, quiet)
	return err
}

func clearSteps(t *testing.T, d *disk, p Place) ([]hold.Step, error) {
	return d.ClearSteps(t.Context(), p)
}

func doClear(t *testing.T, d *disk, p Place) error {
	_, _, err := d.Clear(t.Context(), p, quiet)
	return err
}

// recordOfStep begins to note what is done to the project that steps name.
func (d *disk) recordOfStep(steps []hold.Step) *recorder {
	all, err := d.records()
	if err != nil {
		d.t.Fatal(err)
	}
	if len(all) > 0 {
		return d.record(all[0].Project)
	}
	r := d.record(0)
	r.file, r.text = steps[0].File, ""
	return r
}

// Files move from a container's work directory into the other one, so that is marked first.
func TestTheWorkDirectoryIsFirst(t *testing.T) {
	d := newDisk(t)
	web := d.container(0)
	var first uint64
	d.changed = func(inode uint64, _ uint32, _ Bounds) {
		if first == 0 {
			first = inode
		}
	}
	steps, err := d.SetSteps(t.Context(), web, bytes(10e6), false, quiet)
	if err != nil || len(steps) != 5 || !strings.HasPrefix(steps[1].Call, "mark "+web.Dirs[1]+" ") {
		t.Errorf("%+v, %v", steps, err)
	}
	if d.set(web, bytes(10e6)); first != d.inode(web.Dirs[1]) {
		t.Errorf("marked first is inode %d, and %s is %d", first, web.Dirs[1], d.inode(web.Dirs[1]))
	}
}

func kindsOf(steps []hold.Step) string {
	var kinds []string
	for _, s := range steps {
		switch {
		case s.File != "" && s.Line == "":
			kinds = append(kinds, "remove")
		case s.File != "":
			kinds = append(kinds, "record")
		default:
			word, _, _ := strings.Cut(s.Call, " ")
			kinds = append(kinds, word)
		}
	}
	return strings.Join(kinds, " ")
}

// A dry run refuses what is refused.
func TestStepsRefuse(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	d.set(at(d.path("data")), bytes(5e6))
	var none *NotSetError
	if _, err := d.ClearSteps(t.Context(), at(d.point)); !errors.As(err, &none) {
		t.Errorf("clear of what has none: %v", err)
	}
	if _, err := d.ForgetSteps(at(d.point)); !errors.As(err, &none) {
		t.Errorf("forget of what has none: %v", err)
	}
	for about, place := range map[string]Place{"nothing": at(d.path("none")), "the whole file system": at(d.point)} {
		if _, err := d.SetSteps(t.Context(), place, bytes(10e6), false, quiet); err == nil {
			t.Errorf("set on %s: no error", about)
		}
	}
	if _, err := d.SetSteps(t.Context(), at(d.path("data")), Change{Files: new(uint64(1))}, false, quiet); err == nil || !strings.Contains(err.Error(), "which is 5 more than 1") {
		t.Errorf("more is there: %v", err)
	}
	release, _, err := d.hold(d.mustRecord().Project)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for about, err := range map[string]error{"set": second(setSteps(t, d, at(d.path("data")))), "clear": second(clearSteps(t, d, at(d.path("data")))), "forget": second(d.ForgetSteps(at(d.path("data"))))} {
		if err == nil || !strings.Contains(err.Error(), "another weir is working on it") {
			t.Errorf("%s while a weir works on it: %v", about, err)
		}
	}
}

func (d *disk) mustRecord() record {
	d.t.Helper()
	all, err := d.records()
	if err != nil || len(all) != 1 {
		d.t.Fatal(all, err)
	}
	return all[0]
}

func second(_ []hold.Step, err error) error { return err }
