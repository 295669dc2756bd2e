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

// Missed counts changes that only a comparison of groups found, since Run.
func (t *Tree) Missed() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.missed
	for _, s := range t.counts {
		all += s.Missed
	}
	return all
}

// Err says why the hierarchies are not followed; nil: they are, or Run has not tried yet.
func (t *Tree) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// fails notes that the hierarchies are not followed any more. It reports whether that is news.
func (t *Tree) fails(err error) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.counts {
		t.missed += s.Missed
	}
	t.counts = nil
	news, t.failed = t.failed == nil, err
	return news
}

// follows notes that all hierarchies are followed.
func (t *Tree) follows() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = nil
}

func (t *Tree) note(h *cgroupfs.Hierarchy, s tree.Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]tree.Stats{}
	}
	t.counts[h.MountPoint] = s
}
