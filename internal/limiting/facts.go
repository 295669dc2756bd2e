package limiting

import (
	"context"
	"errors"
	"slices"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// markPaced notes in groups what the pacer holds of them. The notes tell of damaged records.
func (m Manager) markPaced(groups []Group) ([]note.Note, error) {
	if !m.Host.IsOwn() {
		return nil, nil
	}
	jobs, err := pacer.Holding(m.Host.State)
	markJobs(groups, jobs)
	if err != nil {
		return nil, err
	}
	if _, err := pacer.Paced(m.Host.State); err != nil {
		return []note.Note{note.Warningf("record-damaged", "weir cannot tell of each group whether its pacer holds it: %v", err)}, nil
	}
	return nil, nil
}

func markJobs(groups []Group, jobs []pacer.Job) {
	type spot struct {
		path string
		v2   bool
	}
	of := map[spot][]pacer.Job{}
	for _, j := range jobs {
		at := spot{j.Limited.Path, j.Limited.Controller == ""}
		of[at] = append(of[at], j)
	}
	for i := range groups {
		g := &groups[i]
		for _, j := range of[spot{g.Path, g.Version == cgroupfs.V2}] {
			switch {
			case j.Lapsed != "":
				g.Lapsed = j.Lapsed
			case j.Count == pacer.CountEscaped:
				g.Escapes, g.Missed = j.WBPS, j.Missed
			default:
				g.Paced, g.Missed = j.WBPS, j.Missed
			}
		}
		if g.Paced+g.Escapes > 0 {
			g.Lapsed = "" // another pacer has just taken it over
		}
	}
}

// markExpected notes what is expected to hold each limit, on the file systems that some processes
// see; 0 is weir itself. A user who does not see what root's pacer holds is not told that nothing does.
func (m Manager) markExpected(ctx context.Context, deciding place.Host, limited []watch.Limited, groups []Group, views []int) error {
	if len(limited) == 0 {
		return nil
	}
	chains, _, err := m.Host.Devices().OfMounts(ctx, views...)
	if err != nil {
		return ctx.Err() // they cannot be read: the processes may have ended
	}
	deciding = deciding.ForMany()
	hidden := m.Host.State.Hides(m.Host.Root)
	for i, l := range limited {
		var rules []cgroupfs.Rule
		for _, u := range l.Usages {
			rules = append(rules, cgroupfs.Rule{Device: u.Device, Limit: u.Limit})
		}
		d, err := deciding.Standing(l.Group, rules, chains)
		if cgroupfs.IsGone(err) {
			continue // it has ended meanwhile
		}
		if err != nil {
			return err
		}
		for j := range groups[i].Devices {
			one := &groups[i].Devices[j]
			if at := slices.IndexFunc(d.Places, func(e place.Expected) bool { return e.Device.Number == one.Number }); at >= 0 && (!hidden || isHeld(d.Places[at])) {
				one.Expected = &d.Places[at]
			}
		}
	}
	return nil
}

// isHeld reports whether all writes are expected to be held, so that weir's pacer has nothing to hold there.
func isHeld(e place.Expected) bool {
	_, bound := e.Limit.WBPS.Number()
	return !bound || e.Buffered.Holds() && e.Mapped.Holds() && (e.Foreign == nil || e.Foreign.Holds())
}

// markVolumes notes which devices are weir's volumes, as far as that is known.
func (m Manager) markVolumes(groups []Group) {
	if !m.Host.IsOwn() {
		return
	}
	s := m.Host.Volumes(nil)
	all, _ := s.List()
	names := map[blkdev.Number]string{}
	for _, v := range all {
		if at, err := s.Where(v); err == nil && at.Up {
			names[at.Device] = v.Name
		}
	}
	for _, g := range groups {
		for i := range g.Devices {
			g.Devices[i].Volume = names[g.Devices[i].Number]
		}
	}
}

// errNoDevice says that systemd's own way from a path to a device was not found.
var errNoDevice = errors.New("it is not known which device that is")

// unitRecord is what systemd keeps for a target that is a unit of its own on cgroup v2; nil for
// another one, or if systemd does not say.
func (m Manager) unitRecord(ctx context.Context, t targets.Target) *targets.Record {
	if t.Owner.Kind != "systemd" || t.Owner.Unit == "" || t.Group.Hierarchy().Version != cgroupfs.V2 || !m.Host.IsOwn() || !m.Host.SystemdRuns() {
		return nil
	}
	conn, err := m.Host.Systemd(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close()
	entries, err := conn.IOLimits(ctx, t.Owner.Unit)
	if err != nil {
		return nil
	}
	r := &targets.Record{By: "systemd", Source: "systemctl show " + t.Owner.Unit}
	for _, e := range entries {
		one := targets.Recorded{Path: e.Path, Limit: e.Limit, Err: errNoDevice}
		if dev, known := e.On(); known {
			one.Device, one.Err = dev, nil
		}
		r.Limits = append(r.Limits, one)
	}
	return r
}
