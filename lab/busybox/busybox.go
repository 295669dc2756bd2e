// Package busybox makes root file systems and images of busybox alone, for containers of tests: no registry can be
// reached.
package busybox

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Tree makes a root file system, and returns its directory.
func Tree(t testing.TB) string {
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

// Tar makes a file with the same, as docker import takes it, and returns its path.
func Tar(t testing.TB) string {
	t.Helper()
	return file(t, "busybox.tar", layer(t))
}

// Image makes a file with an image that has some names, as docker save writes it, and returns its path.
func Image(t testing.TB, names ...string) string {
	t.Helper()
	layer := layer(t)
	config := marshal(t, map[string]any{"architecture": "amd64", "os": "linux", "config": map[string]any{"Entrypoint": []string{"/bin/sleep", "100000"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}}})
	manifest := marshal(t, []map[string]any{{"Config": "config.json", "RepoTags": names, "Layers": []string{"layer.tar"}}})
	return file(t, "image.tar", archive(t, func(w *tar.Writer) error {
		for _, one := range []struct {
			name string
			text []byte
		}{{"layer.tar", layer}, {"config.json", config}, {"manifest.json", manifest}} {
			if err := w.WriteHeader(&tar.Header{Name: one.name, Mode: 0o644, Size: int64(len(one.text))}); err != nil {
				return err
			}
			if _, err := w.Write(one.text); err != nil {
				return err
			}
		}
		return nil
	}))
}

// layer is a Tree as a tar.
func layer(t testing.TB) []byte {
	t.Helper()
	return archive(t, func(w *tar.Writer) error { return w.AddFS(os.DirFS(Tree(t))) })
}

func archive(t testing.TB, fill func(*tar.Writer) error) []byte {
	t.Helper()
	var all bytes.Buffer
	w := tar.NewWriter(&all)
	if err := fill(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return all.Bytes()
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func file(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o644); err != nil { // also for users who are not root
		t.Fatal(err)
	}
	return path
}
