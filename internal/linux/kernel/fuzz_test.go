package kernel

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzFiles: a fixture's files, or those of a container's /proc, may hold anything.
func FuzzFiles(f *testing.F) {
	f.Add("6.1.0-50-cloud-amd64", "CONFIG_BLK_CGROUP=y\n# CONFIG_X is not set\n", "Filename Type Size Used Priority\n/dev/sda2 partition 976 0 -2\n", "nr_dirty 5\nnr_dirty_threshold 7\n")
	f.Add("6", "CONFIG_", "a b c d e", "nr_dirty 99999999999999999999")
	root := f.TempDir()
	write := func(t testing.TB, name, text string) {
		t.Helper()
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"dirty_background_ratio", "dirty_background_bytes", "dirty_ratio", "dirty_bytes", "dirty_expire_centisecs", "dirty_writeback_centisecs"} {
		write(f, SettingsDir+name, "10\n")
	}
	f.Fuzz(func(t *testing.T, release, config, swaps, vmstat string) {
		write(t, ReleaseFile, release)
		write(t, "boot/config-x", config)
		write(t, "proc/swaps", swaps)
		write(t, "proc/vmstat", vmstat)
		host := New(root)
		if r, err := host.Release(); err == nil && (r.Major < 0 || r.Minor < 0) {
			t.Errorf("%q is %+v", release, r)
		}
		if c, err := host.Config(Release{Text: "x"}, gunzip); err == nil && c.Lacks("BLK_CGROUP") == (c.options["BLK_CGROUP"] != "") {
			t.Errorf("%q: %+v", config, c)
		}
		if all, err := host.Swaps(); err == nil && len(all) > len(swaps) {
			t.Errorf("%d areas in %d bytes", len(all), len(swaps))
		}
		_, _, _ = host.Dirty() // must end
	})
}
