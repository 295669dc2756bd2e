package fullguest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFurnish lays the overlay on a tree where packages enabled a daemon.
func TestFurnish(t *testing.T) {
	tree := t.TempDir()
	wants := filepath.Join(tree, units, "multi-user.target.wants")
	for _, dir := range []string{wants, filepath.Join(tree, "etc/apt/sources.list.d")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, to := range map[string]string{
		filepath.Join(wants, "docker.service"):       "/lib/systemd/system/docker.service",
		filepath.Join(tree, "etc/resolv.conf"):       "/run/gone",
		filepath.Join(tree, units, "default.target"): "/lib/systemd/system/graphical.target",
	} {
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time everything is there
		if err := furnish(tree); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		units + "/default.target":                            "weir-lab.target",
		units + "/getty.target":                              "/dev/null",
		units + "/sysinit.target.wants/weir-modules.service": "../weir-modules.service",
	} {
		if got, err := os.Readlink(filepath.Join(tree, path)); err != nil || got != want {
			t.Errorf("%s leads to %q (%v), want %q", path, got, err, want)
		}
	}
	for _, gone := range []string{wants, filepath.Join(tree, "etc/apt/sources.list.d")} {
		if _, err := os.Lstat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	info, err := os.Stat(filepath.Join(tree, "usr/local/sbin/weir-lab"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("weir-lab: %v, %v", info, err)
	}
}

// TestUnitsOfTheOverlayAreThere: a unit that names a file of the overlay by a
// wrong path would be found out only by a guest that never ends.
func TestUnitsOfTheOverlayAreThere(t *testing.T) {
	for _, unit := range []string{"weir-lab.service", "weir-modules.service"} {
		text, err := overlay.ReadFile("root/" + units + "/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			program, ok := strings.CutPrefix(strings.TrimSpace(line), "ExecStart=")
			if !ok {
				continue
			}
			if _, err := overlay.ReadFile("root" + program); err != nil {
				t.Errorf("%s: %v", unit, err)
			}
		}
	}
}

func TestRecipesDiffer(t *testing.T) {
	bookworm, err := recipe("bookworm")
	if err != nil {
		t.Fatal(err)
	}
	trixie, err := recipe("trixie")
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(bookworm, trixie) {
		t.Error("both suites have one recipe")
	}
	again, err := recipe("trixie")
	if err != nil || !slices.Equal(trixie, again) {
		t.Errorf("a recipe is not the same twice: %v", err)
	}
}
