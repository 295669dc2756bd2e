package quota

import (
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/fault"
)

// A quota puts all files of a tree into a project, and bounds that. Set again, it changes what is
// named alone, and marks nothing.
func TestSet(t *testing.T) {
	for name, old := range map[string]bool{"new kernel": false, "before Linux 6.17": true} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(t)
			d.old = old
			n := d.tree("data")
			d.tree("other")
			unable := 0
			if old {
				unable = 2 // the link and the pipe
			}
			var told []string
			st, marked, err := d.Set(t.Context(), at(d.path("data")), bytes(10e6), false, func(what string, _, _ int) { told = append(told, what) })
			if err != nil {
				t.Fatal(err)
			}
			// A file with two names is marked by both.
			if want := (Marked{Files: n + 1 - unable, Unable: unable}); marked != want {
				t.Errorf("marked %+v, want %+v", marked, want)
			}
			want := map[uint32]int{st.Project: n - unable}
			if old {
				want[0] = unable
			}
			if got := d.in("data"); !maps.Equal(got, want) {
				t.Errorf("its files are in projects %v, want %v", got, want)
			}
			if d.synced != 1 {
				t.Errorf("it was synced %d times before it was on record as set", d.synced)
			}
			if got := d.in("other"); got[0] != n {
				t.Errorf("files beside it are in projects %v", got)
			}
			bound := Bounds{Bytes: 2441 * 4096}
			if d.bounds[st.Project] != bound || st.Bounds != bound || st.By != "weir" || st.State != isSet || st.Usage.Files != uint64(n-unable) {
				t.Errorf("the project has %+v, and the status is %+v", d.bounds[st.Project], st)
			}
			if a := d.files[d.inode(d.path("data/below"))]; a.xflags&projInherit == 0 {
				t.Error("a new file there would not inherit the project")
			}
			if a := d.files[d.inode(d.path("data/a"))]; a.xflags&projInherit != 0 {
				t.Error("a file has a directory's flag")
			}
			d.refuse = func(what string, _ uint64) error {
				if what == "mark" {
					return errors.New("marked again")
				}
				return nil
			}
			again := d.set(at(d.path("data")), Change{Files: new(uint64(50))})
			if again.Project != st.Project || again.Bounds != (Bounds{Bytes: bound.Bytes, Files: 50}) {
				t.Errorf("changed, it is %+v", again)
			}
			if got := d.onRecord(); len(got) != 1 {
				t.Errorf("on record: %q", got)
			}
			if len(told) != 0 {
				t.Errorf("few files have a progress: %q", told)
			}
		})
	}
}

// What is refused leaves no mark, no bound and no record.
func TestSetRefuses(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	d.write("file", "")
	if err := os.WriteFile(d.Names, []byte("backup:77\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk is full")
	for _, c := range []struct {
		about  string
		place  Place
		change Change
		before func()
		want   string
		class  fault.Class
	}{
		{about: "no directory", place: at(d.path("none")), change: bytes(10e6), want: "no such file"},
		{about: "a file", place: at(d.path("file")), change: bytes(10e6), want: "is a file; a quota is on a directory", class: fault.WrongUse},
		{about: "a whole file system", place: at(d.point), change: bytes(10e6), want: "is a whole file system", class: fault.WrongUse},
		{about: "more is there", place: at(d.path("data")), change: Change{Files: new(uint64(3))}, want: "has 6 files and directories, which is 3 more than 3"},
		{about: "no block", place: at(d.path("data")), change: bytes(5), want: "at least one block", class: fault.WrongUse},
		{about: "no limit", place: at(d.path("data")), change: bytes(0), want: "no limit would be left", class: fault.WrongUse},
		{about: "not enforced", place: at(d.path("data")), change: bytes(10e6), before: func() { d.flags = accounted }, want: "enforces no quota", class: fault.NotPossible},
		{about: "built without quotas", place: at(d.path("data")), change: bytes(10e6), before: func() {
			d.refuse = func(what string, _ uint64) error {
				if what == "state" {
					return unix.ENOSYS
				}
				return nil
			}
		}, want: "mounted without the option prjquota", class: fault.NotPossible},
		{about: "another's project", place: at(d.path("data")), change: bytes(10e6), before: func() {
			d.files[d.inode(d.path("data"))] = fileAttr{project: 77}
		}, want: "it is in project 77 (called backup in " + d.Names + ") already"},
		{about: "another file system", place: at(d.path("data")), change: bytes(10e6), before: func() { d.mounts("btrfs", d.point) }, want: "only XFS and ext4 have project quotas", class: fault.NotPossible},
		{about: "overlay", place: at(d.path("data")), change: bytes(10e6), before: func() { d.mounts("overlay", d.point) }, want: "name the container", class: fault.NotPossible},
		{about: "tmpfs", place: at(d.path("data")), change: bytes(10e6), before: func() { d.mounts("tmpfs", d.point) }, want: "is tmpfs, and only", class: fault.NotPossible},
		{about: "no mount", place: at(d.path("data")), change: bytes(10e6), before: func() { d.mounts("xfs") }, want: "no mount has the device number of its file system, so weir cannot tell which file system that is; name a directory on XFS or ext4", class: fault.NotPossible},
		{about: "it fails half way", place: at(d.path("data")), change: bytes(10e6), before: func() {
			d.refuse = func(what string, inode uint64) error {
				if what == "mark" && inode == d.inode(d.path("data/below/b")) && d.files[inode].project == 0 {
					return full
				}
				return nil
			}
		}, want: "mark " + d.path("data/below/b") + ": disk is full"},
		{about: "the bounds fail", place: at(d.path("data")), change: bytes(10e6), before: func() {
			failed := false
			d.refuse = func(what string, _ uint64) error {
				if what == "bound" && !failed {
					failed = true
					return full
				}
				return nil
			}
		}, want: "disk is full"},
		{about: "the kernel has other bounds then", place: at(d.path("data")), change: bytes(10e6), before: func() {
			failed := false
			d.refuse = func(what string, _ uint64) error {
				if what == "bound" && !failed {
					failed = true
					for id := range d.bounds {
						d.bounds[id] = Bounds{Files: 9}
					}
				}
				return nil
			}
		}, want: "the kernel has 9 files now, and not 10.0 MB: another program changes it too"},
		{about: "a sync fails", place: at(d.path("data")), change: bytes(10e6), before: func() {
			failed := false
			d.refuse = func(what string, _ uint64) error {
				if what == "sync" && !failed {
					failed = true
					return full
				}
				return nil
			}
		}, want: "sync " + d.point + ": disk is full"},
		{about: "the kernel does not let root", place: at(d.path("data")), change: bytes(10e6), before: func() {
			failed := false
			d.refuse = func(what string, _ uint64) error {
				if what == "bound" && !failed {
					failed = true
					return unix.EPERM
				}
				return nil
			}
		}, want: "permission denied"},
	} {
		t.Run(c.about, func(t *testing.T) {
			d.flags, d.refuse = accounted|enforced, nil
			clear(d.files)
			d.mounts("xfs", d.point)
			if c.before != nil {
				c.before()
			}
			_, _, err := d.Set(t.Context(), c.place, c.change, false, quiet)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.class != 0 && fault.ClassOf(err) != c.class {
				t.Errorf("%v (class %d), want %q", err, fault.ClassOf(err), c.want)
			}
			d.refuse = nil
			delete(d.files, d.inode(d.path("data"))) // another's stays
			for inode, a := range d.files {
				if a.project != 0 || a.xflags != 0 {
					t.Errorf("inode %d has %+v", inode, a)
				}
			}
			if len(d.bounds) != 0 || len(d.onRecord()) != 0 {
				t.Errorf("left: %v, %q", d.bounds, d.onRecord())
			}
		})
	}
}

// With force, a quota is set on a tree that holds more.
func TestSetForced(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	st, _, err := d.Set(t.Context(), at(d.path("data")), Change{Files: new(uint64(3))}, true, quiet)
	if err != nil || st.Usage.Files <= st.Bounds.Files || st.Bounds.Files != 3 {
		t.Errorf("%+v, %v", st, err)
	}
}

// When it is interrupted, all files leave the project. A directory with many files asks.
func TestSetInterrupted(t *testing.T) {
	d := newDisk(t)
	for i := range 700 {
		d.write("data/"+string(rune('a'+i%26))+"/"+strings.Repeat("x", i/26+1), "")
	}
	ctx, stop := context.WithCancelCause(t.Context())
	asked := errors.New("Ctrl-C")
	marks := 0
	d.changed = func(inode uint64, _ uint32, _ Bounds) {
		if marks++; marks == 200 {
			stop(asked)
		}
	}
	told := map[string]bool{}
	if _, _, err := d.Set(ctx, at(d.path("data")), bytes(100e6), false, func(what string, _, _ int) { told[what] = true }); !errors.Is(err, asked) {
		t.Fatal(err)
	}
	if !told["counting"] || !told["marking"] || !told["unmarking"] {
		t.Errorf("told is %v", told)
	}
	if got := d.in("data"); len(got) != 1 || got[0] == 0 || len(d.onRecord()) != 0 {
		t.Errorf("left are %v, %q", got, d.onRecord())
	}
}

// A killed weir leaves its record. The next one goes on with it, on the same project.
func TestSetGoesOn(t *testing.T) {
	d := newDisk(t)
	n := d.tree("data")
	killed := record{Project: firstProject, Trees: []Tree{{d.path("data"), d.inode(d.path("data"))}}, Mount: d.point, FS: "?", State: setting, New: true}
	st := d.set(at(d.path("data")), bytes(10e6))
	project := st.Project
	killed.Project, killed.FS = project, d.fsID(at(d.path("data")))
	if err := d.save(killed); err != nil {
		t.Fatal(err)
	}
	delete(d.files, d.inode(d.path("data/a")))
	if err := os.WriteFile(d.path("data/new"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if st, err := d.Of(t.Context(), d.path("data")); err != nil || st.State != interrupted || st.Project != project {
		t.Errorf("meanwhile it is %+v, %v", st, err)
	}
	if st = d.set(at(d.path("data")), bytes(20e6)); st.Project != project || st.State != isSet {
		t.Errorf("%+v, want project %d", st, project)
	}
	if got := d.in("data"); got[project] != n+1 {
		t.Errorf("its files are in %v", got)
	}
	release, free, err := d.hold(project)
	if err != nil || !free {
		t.Fatal(free, err)
	}
	defer release()
	if _, _, err := d.Set(t.Context(), at(d.path("data")), bytes(30e6), false, quiet); err == nil || !strings.Contains(err.Error(), "another weir is working on it") {
		t.Errorf("while another weir works on it: %v", err)
	}
}

func (d *disk) fsID(p Place) string {
	d.t.Helper()
	c, err := d.openPlace(d.t.Context(), p)
	if err != nil {
		d.t.Fatal(err)
	}
	defer c.close()
	return c.fs.id
}

// Files of another project are left alone with all below them.
func TestForeignFilesStay(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	theirs := d.inode(d.path("data/below"))
	d.files[theirs] = fileAttr{project: 9}
	_, marked, err := d.Set(t.Context(), at(d.path("data")), bytes(10e6), false, quiet)
	if err != nil || marked.Foreign != 1 || d.files[theirs].project != 9 || d.files[d.inode(d.path("data/below/b"))].project != 0 {
		t.Errorf("%+v, %v; below/b has %+v", marked, err, d.files[d.inode(d.path("data/below/b"))])
	}
	d.files[d.inode(d.path("data/pipe"))] = fileAttr{project: 9}
	w := &walk{ctx: t.Context(), kernel: d.memory, progress: quiet1}
	dir, err := os.Open(d.path("data"))
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if u, err := w.measure(&folder{dir}, 4, map[uint64]bool{}); err != nil || u != (Usage{}) {
		t.Errorf("a tree of another project has %+v, %v", u, err)
	}
}

func quiet1(int) {}

// Immutable files are counted as those that the kernel does not mark.
func TestImmutableFiles(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	fixed := map[uint64]bool{d.inode(d.path("data/a")): true, d.inode(d.path("data/below")): true}
	d.refuse = func(what string, inode uint64) error {
		if what == "mark" && fixed[inode] {
			return unix.EPERM
		}
		return nil
	}
	st, marked, err := d.Set(t.Context(), at(d.path("data")), bytes(10e6), false, quiet)
	if err != nil || marked.Unable != 3 || d.files[d.inode(d.path("data/below/b"))].project != st.Project {
		t.Errorf("%+v, %v", marked, err)
	}
}

// A tree that is deeper than there may be open directories is marked to its end.
func TestDeepTree(t *testing.T) {
	d := newDisk(t)
	deep := "data" + strings.Repeat("/d", openMost+20)
	d.write(deep+"/end", "")
	st := d.set(at(d.path("data")), bytes(100e6))
	if got := d.in("data"); got[st.Project] != openMost+22 || len(got) != 1 {
		t.Errorf("files are in %v", got)
	}
	if got := below(strings.Repeat("/long", 1000), "end"); len(got) > nameMost || !strings.HasSuffix(got, "/long/end") || !strings.Contains(got, "...") {
		t.Errorf("a long name is %d bytes: %s", len(got), got)
	}
}

// The first free project is that which neither a record, a name nor a file has.
func TestFreeProject(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	c, err := d.openPlace(t.Context(), at(d.path("data")))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	first, err := d.freeProject(c.fs, 7, nil)
	if err != nil || first < firstProject || first%apart != 0 {
		t.Fatal(first, err)
	}
	if same, err := d.freeProject(c.fs, 7, nil); err != nil || same != first {
		t.Errorf("asked again, it is %d, %v; want %d", same, err, first)
	}
	d.bounds[first] = Bounds{Files: 1}
	second, err := d.freeProject(c.fs, 7, nil)
	if err != nil || second == first {
		t.Errorf("with limits there: %d, %v", second, err)
	}
	third, err := d.freeProject(c.fs, 7, []record{{Project: second}})
	if err != nil || third == first || third == second {
		t.Errorf("with a record: %d, %v", third, err)
	}
	full := record{}
	var all []record
	for i := range uint32(projects) {
		full.Project = firstProject + i*apart
		all = append(all, full)
	}
	if id, err := d.freeProject(c.fs, 7, all); err == nil || !strings.Contains(err.Error(), "all 16384 numbers that weir gives to projects are in use; remove a quota") {
		t.Errorf("all taken: %d, %v", id, err)
	}
}
