package targets_test

import (
	"testing"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/targets"
)

// On v1 a process of the target tells its group with another controller: the one that was named,
// the first of a part, or any of the group.
func TestGroupWith(t *testing.T) {
	v1 := cgrouptest.New(t, cgroupfs.V1, map[string]string{
		"proc/1/mountinfo":                   "30 23 0:26 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
		"sys/fs/cgroup/memory/cgroup.procs":  "",
		cgrouptest.V1Dir + "/a/cgroup.procs": "7\n", cgrouptest.V1Dir + "/none/cgroup.procs": "",
		"proc/7/cgroup": "2:memory:/seven\n1:blkio:/a\n", "proc/8/cgroup": "2:memory:/eight\n1:blkio:/a\n", "proc/9/cgroup": "2:memory:/nine\n1:blkio:/a\n",
	})
	v2 := cgrouptest.New(t, cgroupfs.V2, map[string]string{cgrouptest.V2Dir + "/cgroup.controllers": "io memory\n", cgrouptest.V2Dir + "/a/cgroup.procs": ""})
	for name, c := range map[string]struct {
		host       cgrouptest.Host
		target     targets.Target
		controller string
		want, none string
	}{
		"v2":             {v2, targets.Target{Group: v2.Group("/a")}, "memory", "/a", ""},
		"v1":             {v1, targets.Target{Group: v1.Group("/a")}, "memory", "/seven", ""},
		"v1, a process":  {v1, targets.Target{Group: v1.Group("/a"), PID: 8, Firsts: []int{9}}, "memory", "/eight", ""},
		"v1, parts":      {v1, targets.Target{Group: v1.Group("/a"), Firsts: []int{9}}, "memory", "/nine", ""},
		"v1, same":       {v1, targets.Target{Group: v1.Group("/none")}, "blkio", "/none", ""},
		"v1, no process": {v1, targets.Target{Group: v1.Group("/none")}, "memory", "", "/none has no process, so weir cannot find its memory cgroup"},
		"v1, gone":       {v1, targets.Target{Group: v1.Group("/a"), PID: 99}, "memory", "", "its process is gone"},
		"not mounted":    {v1, targets.Target{Group: v1.Group("/a")}, "cpuset", "", "no mounted cgroup hierarchy has the cpuset controller"},
	} {
		g, none, err := c.target.GroupWith(c.host.FS, c.controller)
		if err != nil || none != c.none || none == "" && g.Path() != c.want {
			t.Errorf("%s: %q, %v, %v", name, none, g, err)
		}
	}
}
