package running

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
)

// An Outer is one rate on a device that binds weir itself, and would not bind the command in its
// group.
type Outer struct {
	Device blkdev.Number
	Key    limit.Key
	Rate   uint64 // a second
	Cgroup string // whose limit it is: the group that weir was started in, or one above it
}

// takeOver gives the command the limits that bind weir itself and that it would leave. A scope of
// systemd is beside the group that weir is in, on v2 a group with processes has no groups with
// limits below it, and on v1 a limit does not reach the groups below. The lower rate counts, so no
// limit is widened.
func (r *Run) takeOver(ctx context.Context, places []place.Placed) []place.Placed {
	own, err := r.host.FS.OfProcess(r.group.Hierarchy(), 0)
	if err != nil {
		r.warnOuter(err)
		return places
	}
	left := own.Left(r.group)
	all, err := outerOf(left)
	if err != nil {
		r.warnOuter(err)
	}
	r.findPacer(left)
	var mounted []blkdev.Chain
	for _, o := range all {
		i := slices.IndexFunc(places, func(p place.Placed) bool { return p.Device.Number == o.Device })
		if i < 0 {
			if mounted == nil {
				mounted, _, _ = r.host.Devices().OfMounts(ctx, 0) // without, the device is named by its number
			}
			i, places = len(places), append(places, placedAt(ctx, r.host, mounted, o.Device))
		}
		at := &places[i]
		if n, bound := at.Limit.Get(o.Key).Number(); bound && n <= o.Rate {
			continue
		}
		at.Limit = at.Limit.With(o.Key, limit.PerSecond(o.Rate))
		r.Outer = append(r.Outer, o)
		direction := "writes to"
		if o.Key.IsRead() {
			direction = "reads from"
		}
		r.Notes = append(r.Notes, note.Noticef("outer-limit", "%s %s: %s, the limit of cgroup %s, which weir was started in",
			direction, at.Device.Node, limit.PerSecond(o.Rate).Format(o.Key), plain.Line(o.Cgroup)))
	}
	return places
}

func (r *Run) warnOuter(err error) {
	r.Notes = append(r.Notes, note.Warningf("outer-unknown", "weir cannot read all limits of the group that it was started in, and the command may leave them: %v", err))
}

// outerOf reads the lowest rates of groups. An error of one group does not end it.
func outerOf(groups []cgroupfs.Group) (all []Outer, err error) {
	for _, g := range groups {
		rules, failed := g.Rules()
		if failed != nil && !fault.IsUnsupported(failed) { // without the controller it has none
			err = errors.Join(err, failed)
		}
		for _, rule := range rules {
			for _, k := range limit.Keys {
				if n, bound := rule.Limit.Get(k).Number(); bound {
					all = lowest(all, Outer{rule.Device, k, n, g.Path()})
				}
			}
		}
	}
	return all, err
}

// lowest adds a rate, in the place of a higher one on the same device.
func lowest(all []Outer, o Outer) []Outer {
	i := slices.IndexFunc(all, func(is Outer) bool { return is.Device == o.Device && is.Key == o.Key })
	switch {
	case i < 0:
		return append(all, o)
	case o.Rate < all[i].Rate:
		all[i] = o
	}
	return all
}

// placedAt is a device that nobody named, with the first mount that leads to it.
func placedAt(ctx context.Context, h *host.Host, mounted []blkdev.Chain, n blkdev.Number) place.Placed {
	p := place.Placed{Device: h.Device(ctx, n)}
	leads := func(c blkdev.Chain) bool {
		return slices.ContainsFunc(c.Devices, func(d blkdev.Device) bool { return d.Number == n })
	}
	if i := slices.IndexFunc(mounted, leads); i >= 0 {
		p.Chain = mounted[i]
	} else if chain, err := h.Devices().Resolve(ctx, n.String()); err == nil {
		p.Chain = chain
	} else {
		p.Chain.Spec = n.String()
	}
	return p
}

// findPacer finds out whether weir's pacer holds weir's own group, which the command leaves. Only root
// can see that, and have the pacer hold the command.
func (r *Run) findPacer(left []cgroupfs.Group) {
	if os.Geteuid() != 0 {
		return
	}
	for _, g := range left {
		jobs, err := pacer.HoldingOf(r.host.State, pacer.PlaceOf(g, "blkio"))
		if err != nil {
			r.warnOuter(err)
		}
		if r.outer == nil && len(jobs) > 0 {
			r.outer = &g
		}
		r.apart = r.apart || slices.ContainsFunc(jobs, func(j pacer.Job) bool { return j.Count == pacer.CountWritten })
	}
}

// keepPacer has the pacer hold the command as it holds weir's own group, where it can. On cgroup v2
// the kernel holds what the command writes to its own files, so nothing but the outer group tells
// that the pacer is to count all writes.
func (r *Run) keepPacer() {
	if r.outer == nil || r.Decided.Paced != nil {
		return
	}
	holds := []limit.Hold{limit.HoldAuto}
	if r.apart {
		holds = []limit.Hold{limit.HoldPacer, limit.HoldAuto}
	}
	for _, how := range holds {
		d, err := r.Decided.With(how)
		if err != nil || d.Paced == nil && d.Escapes == nil { // it cannot hold the limits that there are
			continue
		}
		if d.Paced != nil || r.Decided.Escapes == nil {
			r.Decided, r.kept = d, true
			r.Notes = append(r.Notes, note.Noticef("outer-pacer", "weir's pacer holds the command's writes, as it holds those of cgroup %s, which weir was started in", plain.Line(r.outer.Path())))
		}
		return
	}
}
