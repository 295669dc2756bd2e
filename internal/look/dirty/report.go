package dirty

import (
	"context"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/targets"
)

// A Report is what was seen of dirty pages for a while.
type Report struct {
	Kernel   string          // its release
	Target   *targets.Target // nil: none was named
	Group    *cgroupfs.Group // of memory; nil: no target was named, or it has none (NoGroup)
	NoGroup  string          // why the target has none
	Settings kernel.Dirty    // at the end
	Bounded  []kernel.Bounded
	Readings []Reading // two at least
}

// Took is how long it was looked at.
func (r Report) Took() time.Duration { return r.Readings[len(r.Readings)-1].At }

// Look watches the host below a root, and a target, until the window is over or the context
// ends. groups are those of the target; both may be nil together. seen is called for each
// reading.
func Look(ctx context.Context, root string, groups *cgroupfs.FS, t *targets.Target, window time.Duration, seen func(Reading)) (Report, error) {
	r := Report{Kernel: kernel.Running(), Target: t}
	var err error
	if t != nil {
		if r.Group, r.NoGroup, err = groupOf(groups, *t); err != nil {
			return r, err
		}
	}
	host := kernel.New(root)
	if r.Readings, r.Settings, err = Watch(ctx, host, r.Group, window, seen); err != nil {
		return r, err
	}
	r.Bounded, err = host.Bounded()
	return r, err
}

// groupOf is the group of a target in the hierarchy of the memory controller, or why there is
// none whose figures tell something.
func groupOf(groups *cgroupfs.FS, t targets.Target) (*cgroupfs.Group, string, error) {
	g, none, err := t.GroupWith(groups, "memory")
	if none != "" || err != nil {
		return nil, none, err
	}
	_, there, err := g.Memory()
	switch {
	case err != nil:
		return nil, "", err
	case g.IsRoot():
		return nil, "it is in the root memory cgroup, whose figures are the host's", nil
	case !there:
		return nil, "the memory controller is not enabled for " + g.Path(), nil
	}
	return &g, "", nil
}
