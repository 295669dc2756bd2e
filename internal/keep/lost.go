package keep

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/note"
)

// lost tells when a limit ends that is not kept.
func (b base) lost(plan hold.Plan) []note.Note {
	t, again := b.t, b.toKeep()
	if len(plan.Past) > 0 && b.scoped() {
		again = fault.Remedy{Do: fault.SetByPlan} // see mayPast
	}
	switch {
	case t.Record != nil:
		return []note.Note{note.Warningf("lost-at-restart", "%s keeps limits of its own and does not know this one: a restart of %s loses it", t.Record.By, t).With(again)}
	case t.Kind == "vm" || t.Kind == "containerd" || t.Kind == "pod":
		return []note.Note{note.Warningf("lost-at-restart", "%s does not know this limit: %s loses it when it restarts", t.Owner.Kind, t).With(again)}
	case plan.Unit != "":
		return append(b.brought(plan), b.past(plan)...)
	case t.Owner.Unit != "" && (t.Owner.Kind != "systemd" || systemd.Restarts(t.Owner.Unit)):
		return []note.Note{note.Warningf("lost-at-restart", "systemd owns %s and keeps no limits on cgroup v1: a restart of the unit loses it", t.Owner.Unit).With(again)}
	}
	return nil
}

// brought tells of other limits that systemd keeps for the unit, and sets again.
func (b base) brought(plan hold.Plan) (notes []note.Note) {
	kept, err := systemd.Kept(b.h.Root, plan.Unit)
	if err != nil {
		return nil
	}
	for _, d := range kept {
		if slices.ContainsFunc(plan.Changes, func(c hold.Change) bool {
			return c.Limit.Get(d.Key).IsSet() && !slices.Contains(plan.Past, c.Device)
		}) {
			notes = append(notes, note.Warningf("brought-back", "the next daemon-reload or boot brings back the limit in %s", d.Path).With(fault.Remedy{Do: fault.KeepChange}))
		}
	}
	return notes
}

// past tells of limits that systemd does not know, because it would set them on another device. A scope has no
// restart.
func (b base) past(plan hold.Plan) (notes []note.Note) {
	for _, c := range plan.Changes {
		if !c.Limit.Bounds() || !slices.Contains(plan.Past, c.Device) || !systemd.Restarts(plan.Unit) {
			continue
		}
		node := b.h.Device(context.Background(), c.Device).Node
		notes = append(notes, note.Warningf("lost-at-restart", "systemd cannot limit %s itself, only the device below it, so weir has written the limit: a restart of %s loses it", node, plan.Unit).
			With(fault.Remedy{Do: fault.SetByPlan}))
	}
	return notes
}

// toKeep is how the user has the limit kept.
func (b base) toKeep() fault.Remedy {
	switch {
	case b.scoped(), b.engineUpdates():
		return fault.Remedy{Do: fault.Keep}
	case b.recorded():
		return fault.Remedy{Do: fault.KeepOnRecord}
	case b.t.Kind == "unit" && strings.HasSuffix(b.t.Name, ".service"):
		return fault.Remedy{Do: fault.KeepAtStart}
	}
	return fault.Remedy{}
}
