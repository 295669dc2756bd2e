package cgconfig

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/lab"
)

// TestAsLibcgroup gives each configuration of the corpus to libcgroup's own program, and
// compares the limits that are in force then with those that weir reads.
func TestAsLibcgroup(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.V1, lab.NoSystemd, lab.Once, lab.Command("cgconfigparser"))
	hierarchies, err := cgroupfs.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hierarchies.Close() })
	people(t)
	a, b := lab.RawDisk(t), lab.RawDisk(t)
	compared := 0
	for _, c := range corpus(t, a.Number.String(), b.Number.String()) {
		if strings.Contains(c.text, "io.max") || strings.Contains(c.text, "mount {") {
			continue // cgroup v2's; and what the guest has mounted stays
		}
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "cgconfig.conf")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			before := groups(t, hierarchies)
			t.Cleanup(func() { forget(t, hierarchies, before) })
			out, err := exec.Command("cgconfigparser", "-l", file).CombinedOutput()
			if said := string(out); err != nil {
				t.Logf("libcgroup: %s", said)
				ofHost := strings.Contains(said, "subsystems is not mounted") || strings.Contains(said, "group parameter does not exist")
				// It gives up at what it cannot set; weir leaves that out and says so.
				if c.want != "" && c.want != "syntax error\n" && !ofHost && differs[c.name] == "" {
					t.Errorf("libcgroup refuses what weir reads: %v", err)
				}
				return
			}
			compared++
			limits, answer := given(c.text)
			limits = slices.DeleteFunc(limits, func(l GroupLimit) bool { return !l.Limit.Bounds() })
			if got := inForce(t, hierarchies); got != spell(bounds(limits)) && differs[c.name] == "" {
				t.Errorf("libcgroup has set\n%sand weir reads\n%s", got, answer)
			}
		})
	}
	if compared < 15 {
		t.Errorf("libcgroup took %d files", compared)
	}
}

// people adds the users and groups that the corpus names to those of the guest.
func people(t *testing.T) {
	t.Helper()
	for file, text := range map[string]string{"/etc/passwd": "root:x:0:0::/:/bin/sh\nmunin:x:400:400::/:/bin/sh\n", "/etc/group": "root:x:0:\nmunin:x:400:\nbatch:x:401:\nusers:x:100:\n"} {
		had, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if had == nil {
				_ = os.Remove(file)
			} else if err := os.WriteFile(file, had, 0o644); err != nil {
				t.Error(err)
			}
		})
	}
}

// differs are the files that weir reads in another way, and why.
var differs = map[string]string{
	"two-disks":            "libcgroup takes a name once in a section, and refuses the file; weir takes both disks",
	"zero-lifts":           "libcgroup takes a name once in a section, and refuses the file; weir takes the last",
	"line-ends-of-windows": "libcgroup refuses them",
	"systemd-default":      "libcgroup 2 has no such section, 3 has",
	"systemd-named":        "libcgroup 2 has no such section, 3 has",
	"a-rate-with-a-suffix": "the kernel takes 10M for 10; weir leaves it out, and says so",
}

// bounds keeps of each limit the rates that bind.
func bounds(limits []GroupLimit) []GroupLimit {
	for i := range limits {
		for _, k := range limit.Keys {
			if limits[i].Limit.Get(k).IsUnlimited() {
				limits[i].Limit = limits[i].Limit.With(k, limit.Rate{})
			}
		}
	}
	return limits
}

// inForce lists the limits of all groups, as spell does.
func inForce(t *testing.T, hierarchies *cgroupfs.FS) string {
	t.Helper()
	var all []GroupLimit
	err := hierarchies.With("blkio").Root().Walk(func(g cgroupfs.Group) error {
		rules, err := g.Rules()
		for _, r := range rules {
			all = append(all, GroupLimit{Group: g.Path(), Device: r.Device, Limit: r.Limit})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return spell(bounds(all))
}

// groups lists the directories of all groups of v1.
func groups(t *testing.T, hierarchies *cgroupfs.FS) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, h := range hierarchies.Hierarchies() {
		if err := filepath.WalkDir(h.MountPoint, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				all[path] = true
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// forget removes the groups that were not there before, and the root's limits.
func forget(t *testing.T, hierarchies *cgroupfs.FS, before map[string]bool) {
	t.Helper()
	var made []string
	for path := range groups(t, hierarchies) {
		if !before[path] {
			made = append(made, path)
		}
	}
	slices.Sort(made)
	for _, path := range slices.Backward(made) {
		if err := unix.Rmdir(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("remove %s: %v", path, err)
		}
	}
	root := hierarchies.With("blkio").Root()
	rules, err := root.Rules()
	for _, r := range rules {
		err = errors.Join(err, root.SetRule(r.Device, limit.None))
	}
	if err != nil {
		t.Error(err)
	}
}
