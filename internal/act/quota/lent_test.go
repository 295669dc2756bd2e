package quota

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// A container's engine may have put its files into a project without bounds. Such a quota is on
// that project: no file is marked, and clearing lifts the bounds alone.
func TestLentProject(t *testing.T) {
	d := newDisk(t)
	web := d.container(4711)
	before := maps.Clone(d.files)
	st := d.set(web, bytes(10e6))
	if st.Project != 4711 || st.Target != "podman:web" || d.bounds[4711].Bytes == 0 || !maps.Equal(before, d.files) {
		t.Errorf("%+v; bounds %v", st, d.bounds)
	}
	if st, err := d.Of(t.Context(), web.Dirs[0]); err != nil || st.By != "weir" || st.Lasting != "podman-web" {
		t.Errorf("%+v, %v", st, err)
	}
	if got, left, err := d.Clear(t.Context(), Place{Name: "podman:web"}, quiet); err != nil || left != 0 || got.Project != 4711 || len(d.bounds) != 0 || !maps.Equal(before, d.files) || len(d.onRecord()) != 0 {
		t.Errorf("%+v, %d, %v; bounds %v", got, left, err, d.bounds)
	}
	d.set(web, bytes(10e6))
	if err := os.RemoveAll(filepath.Dir(web.Dirs[0])); err != nil {
		t.Fatal(err)
	}
	if _, _, err := d.Clear(t.Context(), Place{Lasting: "podman-web"}, quiet); err != nil || d.bounds[4711].Bytes == 0 || len(d.onRecord()) != 0 {
		t.Errorf("of a container that is gone: %v; the project may be another's, and has %v", err, d.bounds)
	}
}

// container makes the two directories of a container, in a layer that its engine has put into a
// project; 0: into none.
func (d *disk) container(project uint32) Place {
	d.write("c/web/diff/etc/x", "1")
	d.write("c/web/work/y", "1")
	for _, name := range []string{"c/web", "c/web/diff", "c/web/work", "c/web/diff/etc", "c/web/diff/etc/x", "c/web/work/y"} {
		d.files[d.inode(d.path(name))] = fileAttr{project: project, xflags: projInherit}
	}
	if project == 0 {
		clear(d.files)
	}
	return Place{Name: "podman:web", Lasting: "podman-web", Dirs: []string{d.path("c/web/diff"), d.path("c/web/work")}}
}

// A project with bounds, or of a layer that shares it, is somebody's who uses it.
func TestNotLent(t *testing.T) {
	d := newDisk(t)
	web := d.container(4711)
	for about, change := range map[string]func(){
		"bounded":         func() { d.bounds[4711] = Bounds{Files: 9} },
		"all layers":      func() { d.files[d.inode(d.path("c"))] = fileAttr{project: 4711} },
		"one tree of two": func() { delete(d.files, d.inode(web.Dirs[1])) },
		"not the layer":   func() { delete(d.files, d.inode(d.path("c/web"))) },
	} {
		d.container(4711)
		clear(d.bounds)
		delete(d.files, d.inode(d.path("c")))
		change()
		var foreign *ForeignError
		if _, _, err := d.Set(t.Context(), web, bytes(10e6), false, quiet); !errors.As(err, &foreign) || foreign.Project != 4711 {
			t.Errorf("%s: %v", about, err)
		}
	}
}
