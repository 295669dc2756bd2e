// Package hosttest makes copies of whole machines for tests: their /proc and /sys, as weir reads
// them below another root. testdata has an archive for each.
package hosttest

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

//go:embed testdata/*.txtar
var archives embed.FS

// linksFile, in an archive, lists its symbolic links: "NAME -> TARGET" a line.
const linksFile = "links"

// MakeAll makes every machine in a directory, each in one of its name: "v1", "v2".
func MakeAll(dir string) error {
	entries, err := archives.ReadDir("testdata")
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".txtar")
		if err := Make(filepath.Join(dir, name), name); err != nil {
			return err
		}
	}
	return nil
}

// Make makes one machine in a directory.
func Make(dir, name string) error {
	data, err := archives.ReadFile(path.Join("testdata", name+".txtar"))
	if err != nil {
		return fmt.Errorf("make host %s: %w", name, err)
	}
	for _, f := range txtar.Parse(data).Files {
		if f.Name == linksFile {
			err = errors.Join(err, makeLinks(dir, string(f.Data)))
			continue
		}
		err = errors.Join(err, write(filepath.Join(dir, f.Name), f.Data))
	}
	if err != nil {
		return fmt.Errorf("make host %s: %w", name, err)
	}
	return nil
}

func write(file string, data []byte) error {
	return errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.WriteFile(file, data, 0o666))
}

func makeLinks(dir, list string) error {
	for line := range strings.Lines(list) {
		name, target, ok := strings.Cut(strings.TrimSpace(line), " -> ")
		if !ok {
			return fmt.Errorf("link %q: not NAME -> TARGET", line)
		}
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o777), os.Symlink(target, file)); err != nil {
			return err
		}
	}
	return nil
}

// Open makes a machine until the end of the test, with more files or others in the place of its
// own, and opens it. Options need no Root.
func Open(t testing.TB, name string, files map[string]string, o host.Options) *host.Host {
	t.Helper()
	o.Root = filepath.Join(t.TempDir(), name)
	if err := Make(o.Root, name); err != nil {
		t.Fatal(err)
	}
	for file, text := range files {
		if err := write(filepath.Join(o.Root, file), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	h, err := host.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Group is a group of the hierarchy with the io controller, by its path.
func Group(t testing.TB, h *host.Host, path string) cgroupfs.Group {
	t.Helper()
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	g, err := io.Group(path)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Volume adds a logical volume on one disk of a machine: "dm-0", "253:0", on "vdb".
func Volume(t testing.TB, root, name, number, disk string) {
	t.Helper()
	dir := filepath.Join("sys/devices/virtual/block", name)
	err := makeLinks(root, "sys/dev/block/"+number+" -> ../../devices/virtual/block/"+name+"\nsys/class/block/"+name+" -> ../../devices/virtual/block/"+name+"\n")
	for file, text := range map[string]string{"dev": number + "\n", "size": "20480\n", "dm/name": "vg0-" + name + "\n", "dm/uuid": "LVM-" + name + "\n", "slaves/" + disk: ""} {
		err = errors.Join(err, write(filepath.Join(root, dir, file), []byte(text)))
	}
	if err != nil {
		t.Fatal(err)
	}
}
