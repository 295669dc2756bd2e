package keep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/state"
)

// FuzzRead: a record is its target's own, whatever its file has, and its file stays in the directory.
func FuzzRead(f *testing.F) {
	f.Add("docker:abc", []byte(`{"target":"docker:abc","name":"docker:web","limits":[{"on":"/data","limit":{"wbps":5}}]}`))
	f.Add("../x", []byte(`{"target":"../x"}`))
	f.Add("docker:other", []byte(`{}`))
	const target = "docker:abc"
	root := f.TempDir()
	if err := savedIn(root).Make(); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if path := SavedPath(name); filepath.Dir(path) != SavedDir || strings.Contains(path, "\x00") {
			t.Errorf("the record of %q is %q", name, path)
		}
		if err := os.WriteFile(filepath.Join(root, SavedPath(target)), data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := ReadSaved(root, target)
		if err == nil && r.Target != target || err != nil && !state.IsDamaged(err) {
			t.Errorf("%q: %+v, %v", data, r, err)
		}
	})
}
