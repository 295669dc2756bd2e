package source

import (
	"github.com/weir-io/weir/internal/agent/tree"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Stats are the counters of the trees that are followed, by their mount points.
func (t *Tree) Stats() map[string]tree.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]tree.Stats{}
	for at, s := range t.counts {
		all[at] = s
	}
	return all
}

func (t *Tree) note(h *cgroupfs.Hierarchy, s tree.Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]tree.Stats{}
	}
	t.counts[h.MountPoint] = s
}
