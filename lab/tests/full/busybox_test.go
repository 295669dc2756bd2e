package full

import (
	"os"
	"path/filepath"
	"testing"
)

// busyboxTree makes a root file system of busybox alone.
func busyboxTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"bin", "dev", "etc", "proc", "sys", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin/busybox"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, applet := range []string{"sh", "echo", "sleep"} {
		if err := os.Symlink("busybox", filepath.Join(dir, "bin", applet)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// busyboxTar is the same as an image to import: no registry can be reached.
func busyboxTar(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "busybox.tar")
	run(t, "tar", "-C", busyboxTree(t), "-cf", path, ".")
	return path
}
