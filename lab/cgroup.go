package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
