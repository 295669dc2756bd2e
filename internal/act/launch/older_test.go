package launch

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
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
