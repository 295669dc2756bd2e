package mend

import (
	"fmt"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// spareBytes is how much memory a group needs for the helper that starts in it: 13 MB were
// measured, and the kernel needs some to check a BPF program.
const spareBytes = 32 << 20

// crowded says why a weir in a group might take others with it, "" if there is room. If
// memory ran out the kernel would kill that weir first; but with it the whole group
// where memory.oom.group says so (cgroup-v2.rst, "Memory Interface Files"), and systemd
// stops a service of which it has killed anything (systemd.service(5), OOMPolicy=).
func crowded(g cgroupfs.Group) (string, error) {
	for ; ; g = g.Parent() {
		m, there, err := g.Memory()
		if err != nil {
			return "", err
		}
		if there && m.Max != 0 {
			used, err := g.MemoryUsed()
			if err != nil {
				return "", err
			}
			if kept := used - min(used, m.Clean); m.Max < kept+spareBytes {
				return fmt.Sprintf("cgroup %s has %s of memory, of which only %s can be used, and weir needs up to %s there; raise its memory.max", g.Path(),
					limit.FormatMeasured(float64(m.Max)), limit.FormatMeasured(float64(m.Max-min(m.Max, kept))), limit.FormatMeasured(spareBytes)), nil
			}
		}
		if g.IsRoot() {
			return "", nil
		}
	}
}
