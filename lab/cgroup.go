package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Cgroup makes a group that the test's end removes, once it is empty. One that a killed run
// has left here empty is replaced: the native lane's groups outlive it.
func Cgroup(t testing.TB, dir string) {
	t.Helper()
	if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
		t.Fatalf("group of an earlier run: %v", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		Await(t, 30*time.Second, "group "+dir+" to be empty", func() bool {
			err := os.Remove(dir)
			return err == nil || os.IsNotExist(err) // a test may have removed it
		})
	})
}

// WeirGroups lists the directories of the groups that weir has made, in the
// hierarchies it makes them in: the one of v1's blkio, or cgroup2, or both.
func WeirGroups(t testing.TB) []string {
	t.Helper()
	var found []string
	cgroups := need(t).Cgroups
	for _, mount := range []string{cgroups.Unified, cgroups.Blkio} {
		if mount == "" {
			continue
		}
		entries, err := os.ReadDir(mount)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.IsDir() && strings.HasPrefix(e.Name(), "weir-") {
				found = append(found, filepath.Join(mount, e.Name()))
			}
		}
	}
	return found
}
