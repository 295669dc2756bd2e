package launch

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

// A weir run that outlives its binary has a record of its own kind.
func TestRecordsOfOtherWeirs(t *testing.T) {
	for text, want := range map[string][]place{
		`[{"controller":"blkio","version":1,"path":"/weir-1"},{"controller":"memory","version":1,"path":"/weir-1"}]`: {{Controller: "blkio", Version: cgroupfs.V1, Path: "/weir-1"}, {Controller: "memory", Version: cgroupfs.V1, Path: "/weir-1"}},
		`[{"controller":"io","version":2,"path":"/weir-2","linger":true,"began":7,"scope":{"name":"x"}}]`:            {{Controller: "io", Version: cgroupfs.V2, Path: "/weir-2", Linger: true, Began: 7}},
	} {
		t.Setenv("XDG_RUNTIME_DIR", "/run") // for callers other than root
		dir := state.At(t.TempDir())
		if err := errors.Join(os.MkdirAll(dir.Path(), 0o700), os.WriteFile(filepath.Join(dir.Path(), "run.123.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if all, err := state.All[[]place](dir, recordKind); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], want) {
			t.Errorf("%s:\n%+v, %v; want\n%+v", text, all, err, want)
		}
	}
}

// A command can be limited in a group below one whose name is not UTF-8: what its weir leaves behind when it
// is killed is removed there.
func TestAGroupOfAnyBytes(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run") // for callers other than root
	const parent = "/user-\xff"
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup" + parent + "/cgroup.procs": ""})
	made := h.Group(parent + "/weir-x")
	if err := os.Mkdir(made.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	dir := state.At(t.TempDir())
	record, err := dir.New(recordKind, placesOf([]cgroupfs.Group{made}, false))
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Leave(); err != nil { // as the kernel does when it ends
		t.Fatal(err)
	}
	if err := Sweep(dir, h.FS); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(made.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q is left (%v)", made.Path(), err)
	}
}
