package limiting

import (
	"context"
	"errors"
	"time"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/targets"
)

// Watch makes a watcher of all groups of the host, which knows their names, what is expected to
// hold their limits, and what weir's pacer holds. details and follow are those of watch.Options. It
// changes nothing, and starts nothing.
func (m Manager) Watch(details int, follow bool) (*watch.Watcher, error) {
	io, err := m.Host.IO()
	if err != nil {
		return nil, err
	}
	memory := io // v2 has all controllers in one hierarchy, v1 need not
	if io.Version == cgroupfs.V1 || !io.Has("memory") {
		memory = m.Host.FS.With("memory")
	}
	return watch.New(watch.Options{Root: m.Host.Root, IO: io, Memory: memory, Details: details, Follow: follow, Describe: m.describe, Paced: m.paced, Paused: m.paused}), nil
}

// describe says who groups are, and what is expected to hold their limits.
func (m Manager) describe(ctx context.Context, limited []watch.Limited) ([]watch.Known, error) {
	systemdRuns := m.Host.SystemdRuns()
	groups := make([]Group, len(limited))
	var ruled []watch.Limited
	var its []int // the places of ruled in groups
	for i, l := range limited {
		owner := targets.OwnerOf(l.Group, systemdRuns)
		groups[i] = Group{Target: targets.NameOf(l.Group, owner), Path: l.Group.Path(), Version: l.Group.Hierarchy().Version, Owner: owner}
		for _, u := range l.Usages {
			d := Device{Limit: u.Limit}
			d.Number = u.Device
			groups[i].Devices = append(groups[i].Devices, d)
		}
		if len(l.Usages) > 0 {
			ruled, its = append(ruled, l), append(its, i)
		}
	}
	m.nameGroups(ctx, groups)
	held := make([]Group, len(its))
	for i, at := range its {
		held[i] = groups[at]
	}
	deciding := m.Host.Deciding()
	jobs, err := m.pacing()
	deciding.Jobs = pacer.ByPlace(jobs)
	err = errors.Join(err, m.markExpected(ctx, deciding, ruled, held, []int{0}))
	known := make([]watch.Known, len(groups))
	for i, g := range groups {
		known[i] = watch.Known{Target: g.Target, Owner: g.Owner}
	}
	m.markContainers(ctx, groups, known)
	for i, at := range its {
		for _, d := range held[i].Devices {
			if d.Expected != nil {
				known[at].Expected = append(known[at].Expected, d.Expected)
			}
		}
	}
	return known, err
}

// pacing lists what weir's pacer holds. It starts none in the place of a dead one.
func (m Manager) pacing() ([]pacer.Job, error) {
	if !m.Host.IsOwn() {
		return nil, nil
	}
	return pacer.Holding(m.Host.State)
}

// paced says what weir's pacer holds, by the path of the group.
func (m Manager) paced() (map[string]watch.Paced, error) {
	jobs, err := m.pacing()
	io, ioErr := m.Host.IO()
	if err != nil || ioErr != nil {
		return nil, err
	}
	all := map[string]watch.Paced{}
	for _, j := range jobs {
		if (j.Limited.Controller == "") != (io.Version == cgroupfs.V2) || j.Lapsed != "" && all[j.Limited.Path].WBPS > 0 {
			continue
		}
		all[j.Limited.Path] = watch.Paced{WBPS: j.WBPS, Escapes: j.Count == pacer.CountEscaped, Lapsed: j.Lapsed, Missed: j.Missed}
	}
	return all, nil
}

// pausedMost bounds the question to the pacer, for which a reading waits.
const pausedMost = 200 * time.Millisecond

// paused says for how long weir's pacer has paused groups, by their paths.
func (m Manager) paused() (map[string]time.Duration, error) {
	io, err := m.Host.IO()
	if err != nil {
		return nil, err
	}
	sums, err := m.Host.Pacer().Sums(pausedMost)
	if err != nil {
		return nil, err
	}
	all := map[string]time.Duration{}
	for _, s := range sums {
		if (s.Limited.Controller == "") == (io.Version == cgroupfs.V2) {
			all[s.Limited.Path] = s.Paused
		}
	}
	return all, nil
}
