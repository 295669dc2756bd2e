package volume

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/limit"
)

func TestNames(t *testing.T) {
	s := Store{Dir: "/nowhere/v"}
	dir := t.TempDir()
	if err := os.Symlink(dir, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, mount string }{
		{"data", "/nowhere/v/data"},
		{"a.b-c_1", "/nowhere/v/a.b-c_1"},
		{dir + "/link/new/deep", at + "/new/deep"},
		{dir + "/", at},
		{"", ""}, {".hidden", ""}, {"-x", ""}, {"a b", ""}, {"a\n", ""}, {"../x y", ""}, {"/", ""},
	} {
		v, err := s.named(c.what)
		if (err == nil) != (c.mount != "") || v.Mount != c.mount {
			t.Errorf("%q: %+v, %v; want %q", c.what, v, err, c.mount)
		}
	}
}

func TestRecords(t *testing.T) {
	s := Store{Dir: t.TempDir()}
	v := Volume{Name: "data", Mount: "/srv/data", Image: "/d/data.img", FS: "ext4", Limit: limit.Limit{}.With(limit.WBPS, limit.PerSecond(5)), Loop: 7}
	if err := os.Mkdir(s.records(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.save(v, making); err != nil {
		t.Fatal(err)
	}
	if all, err := s.List(); err != nil || len(all) != 0 {
		t.Errorf("while it is made: %v, %v", all, err)
	}
	if err := s.turn(v, making, ready); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"data", "/srv/data", "/srv/x/../data"} {
		if got, err := s.Find(what); err != nil || got.Loop != 7 || got.Limit != v.Limit {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	if _, err := s.Find("srv"); err == nil {
		t.Error("srv is found")
	}
	if err := os.WriteFile(s.path("bad", ready), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.List(); err == nil {
		t.Error("a record that cannot be read is passed over")
	}
}

// Only the file that a volume was made with is removed.
func TestRemoveImage(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "data.img")
	if err := os.WriteFile(name, []byte("somebody else's"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err := identify(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := folderOf(name)
	if err != nil {
		t.Fatal(err)
	}
	other := id
	other.Born++
	if err := removeImage(Volume{Image: name, File: id, Folder: folder + 1}); !errors.Is(err, errElsewhere) {
		t.Errorf("in another directory: %v", err)
	}
	if err := removeImage(Volume{Image: name, File: other, Folder: folder}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); err != nil {
		t.Errorf("another file: %v", err)
	}
	if err := removeImage(Volume{Image: name, File: id, Folder: folder}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(name); err == nil {
		t.Error("its own file is left")
	}
	if err := removeImage(Volume{Image: name, File: id, Folder: folder}); err != nil {
		t.Errorf("again: %v", err)
	}
}

func TestDirtyFor(t *testing.T) {
	for _, c := range []struct {
		limit limit.Limit
		bytes uint64
		bound bool
	}{
		{limit.Limit{}, 0, false},
		{limit.Limit{}.With(limit.WIOPS, limit.PerSecond(100)), 0, false},
		{limit.Limit{}.With(limit.WBPS, limit.Unlimited), 0, false},
		{limit.Limit{}.With(limit.WBPS, limit.PerSecond(50e6)), 25e6, true},
		{limit.Limit{}.With(limit.WBPS, limit.PerSecond(1000)), 1 << 20, true},
	} {
		if n, bound := DirtyFor(c.limit); bound != c.bound || bound && n != c.bytes {
			t.Errorf("%s: %d, %v", c.limit, n, bound)
		}
	}
}
