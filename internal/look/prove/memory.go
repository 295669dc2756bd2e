package prove

import (
	"strconv"
	"strings"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// oomKills is how many processes of a group and of its child groups the kernel has OOM-killed:
// oom_kill of memory.events (cgroup-v2.rst, "Memory Interface Files"). It is 0 if the kernel
// does not count that, as on v1.
func oomKills(g cgroupfs.Group) uint64 {
	text, there, err := g.Text("memory.events")
	if err != nil || !there {
		return 0
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "oom_kill "); ok {
			n, _ := strconv.ParseUint(value, 10, 64)
			return n
		}
	}
	return 0
}
