package hold

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

// A weir that was replaced by another while it changed limits has left a record of its own kind.
func TestRecordsOfOtherWeirs(t *testing.T) {
	lab.Unit(t)
	rule := []journalRule{{sda, turn{writes(5), writes(7)}}}
	for text, want := range map[string]journal{
		`{"version":1,"group":"/x","rules":[{"device":"8:0","before":{"rbps":"max","wbps":5,"riops":"max","wiops":"max"},"after":{"rbps":"max","wbps":7,"riops":"max","wiops":"max"}}]}`: {Version: cgroupfs.V1, Group: "/x", Rules: rule},
		`{"version":2,"group":"/y","rules":null,"unit":"x.service","persist":true,"file":{"path":"/f","new":"/f.1.new","before":"","after":"x"}}`: {Version: cgroupfs.V2, Group: "/y", Unit: "x.service", Persist: true,
			File: &journalFile{Path: "/f", New: "/f.1.new", After: "x"}},
		`{"version":2,"group":"/z","rules":[{"device":"8:0","before":{"rbps":"max","wbps":5,"riops":"max","wiops":"max"},"after":{"rbps":"max","wbps":7,"riops":"max","wiops":"max"},"burst":3}],"reason":"new"}`: {Version: cgroupfs.V2, Group: "/z", Rules: rule},
	} {
		t.Setenv("XDG_RUNTIME_DIR", "/run") // for callers other than root
		dir := state.At(t.TempDir())
		if err := errors.Join(os.MkdirAll(dir.Path(), 0o700), os.WriteFile(filepath.Join(dir.Path(), "set.123.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if all, err := state.All[journal](dir, journalKind); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0], want) {
			t.Errorf("%s:\n%+v, %v; want\n%+v", text, all, err, want)
		}
	}
}
