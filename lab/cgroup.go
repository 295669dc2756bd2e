package lab

import "testing"

// CgroupMounts are the mount points of the hierarchies that weir makes groups in:
// the one of v1's blkio, or cgroup2, or both.
func CgroupMounts(t testing.TB) []string {
	t.Helper()
	var dirs []string
	for _, dir := range []string{Need(t).Cgroups.Unified, Need(t).Cgroups.Blkio} {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
