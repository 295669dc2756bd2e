package limiting

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// Shown is what Show found: the limited groups of a host, or the one group of a target.
type Shown struct {
	Target *targets.Target // that was asked for; nil: all groups were
	Window time.Duration   // in which rates were measured; 0: they were not
	Groups []Group
	Notes  []note.Note
}

// A Group is a group with its limits, and what is known of them.
type Group struct {
	Target    string // as a user spells it
	Path      string
	Version   cgroupfs.Version
	Owner     targets.Owner
	Processes int // in the group and below
	Devices   []Device

	// Paced is what weir's pacer holds of the group's buffered writes, in bytes a second; 0:
	// nothing.
	Paced uint64
	// Escapes is what it holds of what the kernel charges to other groups, with the group's own,
	// in bytes a second (cgroup v2); 0: nothing.
	Escapes uint64
	Lapsed  string // why the pacer holds nothing of the group, though it was asked to
	Missed  string // which processes of the group the pacer cannot pause, or what it cannot count, and why

	// What follows is known of a group that was asked for by its target.

	Record *targets.Record // what the owner stores beside the limits in force; nil: not known
	Space  *quota.Status   // the quota that the target's own files are in; nil: none
	Kept   []limit.Asked   // what weir has on record for the target's next start

	// Plan is the plan that the group's target has; nil: none, or it is not known. Package planned
	// fills it in.
	Plan *GroupPlan
}

// A GroupPlan is the plan of a group's target.
type GroupPlan struct {
	Name    string
	By      string // what says so, for people
	Differs bool   // the limits in force are not the plan's
}

// A Device is a device with the limits of one group on it.
type Device struct {
	blkdev.Device
	Limit    limit.Limit
	Rates    *watch.Rates    // nil: not measured, or the kernel counts nothing for the device
	Expected *place.Expected // what is expected to hold the limit; nil: it is not known
	Volume   string          // the name of weir's volume on the device; empty: none
}

// ShowAll finds every limited group of the host, and measures the I/O of each for window; 0: it
// does not.
func (m Manager) ShowAll(ctx context.Context, window time.Duration) (Shown, error) {
	io, err := m.Host.IO()
	if err != nil {
		return Shown{}, err
	}
	groups, unread, err := watch.Find(io.Root())
	if err != nil {
		return Shown{}, err
	}
	shown, err := m.shown(ctx, nil, groups, window)
	for _, l := range groups {
		if l.Unread != nil {
			unread = append(unread, l.Unread)
		}
	}
	for i, err := range unread {
		if i == unreadMost {
			more := "1 more cgroup"
			if n := len(unread) - i; n > 1 {
				more = fmt.Sprintf("%d more cgroups", n)
			}
			shown.Notes = append(shown.Notes, note.Warningf("group-unread", "%s cannot be read", more))
			break
		}
		shown.Notes = append(shown.Notes, note.Warningf("group-unread", "a cgroup cannot be read, and is left out: %v", err))
	}
	return shown, err
}

// unreadMost bounds the groups that are named because they cannot be read.
const unreadMost = 8

// Show finds the group of a target, with what is known of the target besides, and measures its
// I/O for window; 0: it does not. A group that cannot have rules causes no error.
func (m Manager) Show(ctx context.Context, spec string, window time.Duration) (Shown, error) {
	t, err := m.Host.Target(ctx, spec)
	if err != nil {
		return Shown{}, err
	}
	group, err := watch.Of(t.Group)
	if err != nil {
		return Shown{}, err
	}
	one := []watch.Limited{group}
	shown, err := m.shown(ctx, t.Views, one, window)
	if err = cmp.Or(err, one[0].Unread); err != nil {
		return Shown{}, err
	}
	shown.Target = &t
	notes, err := m.markTarget(ctx, t, &shown.Groups[0])
	shown.Notes = append(shown.Notes, notes...)
	return shown, err
}

// shown reads what is known of groups. views returns processes that see their file systems; nil:
// weir itself does.
func (m Manager) shown(ctx context.Context, views func() []int, groups []watch.Limited, window time.Duration) (Shown, error) {
	var shown Shown
	if window > 0 && len(groups) > 0 {
		if err := watch.Measure(ctx, groups, window); err != nil {
			return shown, err
		}
		shown.Window = window
	}
	shown.Groups = m.groupsOf(ctx, groups, shown.Window > 0)
	var err error
	if shown.Notes, err = m.markPaced(shown.Groups); err != nil {
		return shown, err
	}
	seeing := []int{0}
	if views != nil {
		seeing = views()
	}
	if err := m.markExpected(ctx, m.Host.Deciding(), groups, shown.Groups, seeing); err != nil {
		return shown, err
	}
	m.markVolumes(shown.Groups)
	m.nameGroups(ctx, shown.Groups)
	return shown, nil
}

// groupsOf are groups by their paths and owners, with the rates that were measured.
func (m Manager) groupsOf(ctx context.Context, all []watch.Limited, measured bool) []Group {
	known := map[blkdev.Number]blkdev.Device{}
	systemdRuns := m.Host.SystemdRuns()
	var groups []Group
	for _, l := range all {
		owner := targets.OwnerOf(l.Group, systemdRuns)
		g := Group{Target: targets.NameOf(l.Group, owner), Path: l.Group.Path(), Version: l.Group.Hierarchy().Version, Owner: owner}
		if members, err := targets.Members(l.Group); err == nil {
			g.Processes = len(members)
		}
		for _, u := range l.Usages {
			if _, is := known[u.Device]; !is {
				known[u.Device] = m.Host.Device(ctx, u.Device)
			}
			d := Device{Device: known[u.Device], Limit: u.Limit}
			if measured && u.Counted {
				d.Rates = &u.Rates
			}
			g.Devices = append(g.Devices, d)
		}
		groups = append(groups, g)
	}
	return groups
}

// markTarget notes what is known of a target beside the limits in force.
func (m Manager) markTarget(ctx context.Context, t targets.Target, g *Group) ([]note.Note, error) {
	g.Target, g.Owner, g.Record = t.String(), t.Owner, t.Record
	if g.Record == nil {
		g.Record = m.unitRecord(ctx, t)
	}
	r, notes, err := keep.Recorded(m.Host, t)
	g.Kept = r.Entries
	return notes, err
}
