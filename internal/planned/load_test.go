package planned

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/plans/planfile"
)

// Where plans are in force, a directory that is away is no wish to have none. An empty one is.
func TestLoadNewer(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, Dir)
	c, err := LoadNewer(root, "", planfile.Read)
	if c != nil || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "make it an empty directory") {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if c, err = LoadNewer(root, "", planfile.Read); err != nil || len(c.Files) != 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("plans: {a: {read: 5}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = LoadNewer(root, "", planfile.Read); err != nil || len(c.Plans) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err = LoadNewer(root, filepath.Join(dir, "none"), planfile.Read); c != nil || !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "empty") {
		t.Errorf("%+v, %v", c, err)
	}
}

// A file that goes while the others are read is not the directory that is away.
func TestAFileThatIsAway(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, Dir)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Symlink("nowhere", filepath.Join(dir, "a.yaml"))); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(root, "", planfile.Read); c != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%+v, %v", c, err)
	}
}

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
