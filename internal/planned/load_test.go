package planned

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/internal/plans/planfile"
)

// What an editor leaves beside a file that it has open is no plan: Emacs' lock is a link to nowhere.
func TestHiddenFiles(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, Dir)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("plans: {a: {read: 5}}"), 0o600),
		os.Symlink("root@host.4711:1764230000", filepath.Join(dir, ".#a.yaml")), os.WriteFile(filepath.Join(dir, ".a.yml"), []byte("{{{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(root, "", planfile.Read); err != nil || len(c.Files) != 1 || filepath.Base(c.Files[0]) != "a.yaml" {
		t.Errorf("%+v, %v", c, err)
	}
}
