package quota

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/targets"
)

// All projects with limits are listed, whoever set them, and all records. A file system that is
// mounted twice is listed once.
func TestList(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	d.tree("old")
	d.mounts("xfs", d.point, d.path("bind"))
	set := d.set(at(d.path("data")), bytes(10e6))
	gone := d.set(at(d.path("old")), bytes(20e6))
	if err := os.RemoveAll(d.path("old")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(d.Names, []byte("backup:77\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.bounds[77], d.bounds[1<<32-1] = Bounds{Files: 5}, Bounds{Files: 6}
	d.files[1] = fileAttr{project: 78} // without bounds
	elsewhere := record{Project: 9, Trees: []Tree{{"/mnt/away", 5}}, Mount: "/mnt", FS: "another", State: isSet}
	if err := d.save(elsewhere); err != nil {
		t.Fatal(err)
	}
	all, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[uint32]string{}
	for _, st := range all {
		got[st.Project] = st.By + " " + st.State + " " + st.Target
	}
	want := map[uint32]string{set.Project: "weir set " + d.path("data"), gone.Project: "weir gone " + d.path("old"), 9: "weir not mounted /mnt/away", 77: "unknown set backup", 1<<32 - 1: "unknown set "}
	if !reflect.DeepEqual(got, want) || len(all) != len(want) {
		t.Errorf("listed %v, want %v", got, want)
	}
	d.flags = 0
	if all, err = d.List(t.Context()); err != nil || len(all) != 3 {
		t.Errorf("where nothing is counted: %+v, %v", all, err)
	}
	broken := errors.New("I/O error")
	d.refuse = func(what string, _ uint64) error { return broken }
	if all, err = d.List(t.Context()); !errors.Is(err, broken) || len(all) != 3 {
		t.Errorf("where it cannot be asked: %+v, %v", all, err)
	}
}

// A directory's quota is that of its project, whoever set it.
func TestOf(t *testing.T) {
	d := newDisk(t)
	d.tree("data")
	set := d.set(at(d.path("data")), bytes(10e6))
	if st, err := d.Of(t.Context(), d.path("data")); err != nil || !reflect.DeepEqual(st, set) {
		t.Errorf("%+v, %v; want %+v", st, err, set)
	}
	if st, err := d.Of(t.Context(), d.point); err != nil || st.Project != 0 || st.Mount != d.point {
		t.Errorf("without one: %+v, %v", st, err)
	}
	d.files[d.inode(d.point)] = fileAttr{project: 77}
	d.bounds[77] = Bounds{Files: 5}
	if st, err := d.Of(t.Context(), d.point); err != nil || st.By != "unknown" || st.Bounds.Files != 5 || st.Usage.Files != 1 {
		t.Errorf("another's: %+v, %v", st, err)
	}
	if _, err := d.Of(t.Context(), d.path("none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	if m, err := d.On(t.Context(), d.path("data")); err != nil || m.Point != d.point {
		t.Errorf("it is on %+v, %v", m, err)
	}
}

// A stopped container's quota is found by its name for good, and a running one's by its files.
func TestQuotasOfContainers(t *testing.T) {
	d := newDisk(t)
	web := d.container(0)
	st := d.set(web, bytes(10e6))
	running := targets.Target{Kind: "podman", Name: "web", Lasting: "podman-web", Firsts: []int{47}}
	k := kind{name: "podman", has: "web", err: &targets.StoppedError{Target: "podman:web", Lasting: "podman-web"}}
	f := Finder{Devices: d.Devices, Kinds: func() ([]targets.Kind, error) { return []targets.Kind{k}, nil }}
	if all, err := d.At(t.Context(), f, "podman:web"); err != nil || len(all) != 1 || all[0].Project != st.Project {
		t.Errorf("stopped: %+v, %v", all, err)
	}
	k.err = &targets.StoppedError{Target: "podman:web", Lasting: "podman-other"}
	if all, err := d.At(t.Context(), f, "podman:web"); err != nil || all != nil {
		t.Errorf("stopped, without one: %+v, %v", all, err)
	}
	k.err = &targets.NotFound{Target: "podman:web", Why: "there is none"}
	if _, err := d.At(t.Context(), f, "podman:web"); !errors.Is(err, k.err) {
		t.Errorf("unknown: %v", err)
	}
	if all, err := d.At(t.Context(), f, d.path("c/web/diff")); err != nil || len(all) != 1 || all[0].Target != "podman:web" {
		t.Errorf("its directory: %+v, %v", all, err)
	}
	if all, err := d.At(t.Context(), f, d.point); err != nil || all != nil {
		t.Errorf("a directory without one: %+v, %v", all, err)
	}
	if got := d.SpaceOf(t.Context(), f, running); got != nil {
		t.Errorf("of a container whose root is not known: %+v", got)
	}
	d.overlay(web)
	if got := d.SpaceOf(t.Context(), f, running); got == nil || got.Project != st.Project {
		t.Errorf("of a running container: %+v", got)
	}
	if got := d.SpaceOf(t.Context(), f, targets.Target{Kind: "unit", Name: "x.service"}); got != nil {
		t.Errorf("of a unit: %+v", got)
	}
	if _, _, err := d.Clear(t.Context(), web, quiet); err != nil {
		t.Fatal(err)
	}
	if got := d.SpaceOf(t.Context(), f, running); got != nil {
		t.Errorf("without one: %+v", got)
	}
}

// overlay gives process 47 the root of a container.
func (d *disk) overlay(p Place) {
	d.t.Helper()
	root := strings.TrimSuffix(d.point, "srv") + "host/proc/"
	line := "90 20 0:50 / %s rw - overlay overlay rw,lowerdir=/l,upperdir=" + p.Dirs[0] + ",workdir=" + p.Dirs[1] + "\n"
	text, err := os.ReadFile(root + "1/mountinfo")
	if err == nil {
		err = os.WriteFile(root+"1/mountinfo", append(text, strings.Replace(line, "%s", "/merged", 1)...), 0o644)
	}
	err = errors.Join(err, os.MkdirAll(root+"47", 0o755), os.WriteFile(root+"47/mountinfo", []byte(strings.Replace(line, "%s", "/", 1)), 0o644))
	if err != nil {
		d.t.Fatal(err)
	}
}
