package quota

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// Clear takes all files out of the project. What weir has not set it does not clear.
func TestClear(t *testing.T) {
	d := newDisk(t)
	n := d.tree("data")
	st := d.set(at(d.path("data")), bytes(10e6))
	d.files[d.inode(d.path("data/pipe"))] = fileAttr{project: 9} // another's by now
	was, left, err := d.Clear(t.Context(), at(d.path("data")), quiet)
	if err != nil || left != 0 || was.Bounds != st.Bounds || was.Project != st.Project || was.FSType != "xfs" {
		t.Fatalf("%+v, %d, %v", was, left, err)
	}
	if got, want := d.in("data"), (map[uint32]int{0: n - 1, 9: 1}); !maps.Equal(got, want) || len(d.bounds) != 0 || len(d.onRecord()) != 0 {
		t.Errorf("files are in %v, want %v; bounds %v, on record %q", got, want, d.bounds, d.onRecord())
	}
	if a := d.files[d.inode(d.path("data/below"))]; a.xflags != 0 {
		t.Errorf("a directory has %+v", a)
	}
	var none *NotSetError
	if _, _, err := d.Clear(t.Context(), at(d.path("data")), quiet); !errors.As(err, &none) || fault.ClassOf(err) != fault.NotFound {
		t.Errorf("again: %v", err)
	}
	d.files[d.inode(d.path("data"))] = fileAttr{project: 77}
	var foreign *ForeignError
	if _, _, err := d.Clear(t.Context(), at(d.path("data")), quiet); !errors.As(err, &foreign) || !strings.Contains(err.Error(), "chattr -R -P -p 0") {
		t.Errorf("another's: %v", err)
	}
}

// What the kernel does not unmark stays, and is counted.
func TestClearLeaves(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	d.set(at(d.path("data")), bytes(10e6))
	fixed := d.inode(d.path("data/a"))
	d.refuse = func(what string, inode uint64) error {
		if what == "mark" && inode == fixed {
			return unix.EPERM
		}
		return nil
	}
	if _, left, err := d.Clear(t.Context(), at(d.path("data")), quiet); err != nil || left != 1 {
		t.Errorf("%d are left, %v", left, err)
	}
}

// A quota is found by its directory under another name, by its target, and by its number.
func TestClearFinds(t *testing.T) {
	for _, c := range []struct {
		about string
		after func(*testing.T, *disk)
		place func(d *disk, project uint32) Place
		want  string
		files int // that leave the project
	}{
		{about: "by its number", place: func(_ *disk, project uint32) Place { return Place{Project: project} }, files: 6},
		{about: "moved, by its new name", after: func(t *testing.T, d *disk) {
			if err := os.Rename(d.path("data"), d.path("moved")); err != nil {
				t.Fatal(err)
			}
		}, place: func(d *disk, _ uint32) Place { return at(d.path("moved")) }, files: 6},
		{about: "moved, by its old name", after: func(t *testing.T, d *disk) {
			if err := os.Rename(d.path("data"), d.path("moved")); err != nil {
				t.Fatal(err)
			}
		}, place: func(d *disk, _ uint32) Place { return at(d.path("data")) }, want: "the directory was moved, and 6 files are in its project"},
		{about: "removed", after: func(t *testing.T, d *disk) {
			if err := os.RemoveAll(d.path("data")); err != nil {
				t.Fatal(err)
			}
			clear(d.files)
		}, place: func(d *disk, _ uint32) Place { return at(d.path("data")) }},
		{about: "another directory has its name", after: func(t *testing.T, d *disk) {
			if err := os.Rename(d.path("data"), d.path("moved")); err != nil {
				t.Fatal(err)
			}
			d.tree("data")
		}, place: func(d *disk, _ uint32) Place { return at(d.path("data")) }, want: "the directory was moved"},
		{about: "its disk is gone", after: func(t *testing.T, d *disk) {
			if err := os.RemoveAll(d.path("data")); err != nil {
				t.Fatal(err)
			}
			d.mounts("xfs")
		}, place: func(d *disk, _ uint32) Place { return at(d.path("data")) }, want: "is not mounted"},
	} {
		t.Run(c.about, func(t *testing.T) {
			d := newDisk(t)
			d.tree("data")
			st := d.set(at(d.path("data")), bytes(10e6))
			before := d.used(st.Project)
			if c.after != nil {
				c.after(t, d)
			}
			_, _, err := d.Clear(t.Context(), c.place(d, st.Project), quiet)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || d.bounds[st.Project].Bytes == 0 || len(d.onRecord()) != 1 {
					t.Errorf("%v, want %q; bounds %v", err, c.want, d.bounds)
				}
				return
			}
			if err != nil || d.used(st.Project) != 0 || int(before) < c.files || len(d.bounds) != 0 || len(d.onRecord()) != 0 {
				t.Errorf("%v; %d files are left, bounds %v, on record %q", err, d.used(st.Project), d.bounds, d.onRecord())
			}
		})
	}
}

// Forget removes the record alone, unless a weir is at work.
func TestForget(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	st := d.set(at(d.path("data")), bytes(10e6))
	release, _, err := d.hold(st.Project)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Forget(t.Context(), at(d.path("data"))); err == nil || !strings.Contains(err.Error(), "another weir is working on it") {
		t.Errorf("while it is held: %v", err)
	}
	release()
	before := maps.Clone(d.files)
	if was, err := d.Forget(t.Context(), at(d.path("data"))); err != nil || was.Project != st.Project || !slices.Equal(was.Paths, []string{d.path("data")}) {
		t.Errorf("%+v, %v", was, err)
	}
	if !maps.Equal(before, d.files) || d.bounds[st.Project].Bytes == 0 || len(d.onRecord()) != 0 {
		t.Errorf("bounds %v, on record %q", d.bounds, d.onRecord())
	}
}
