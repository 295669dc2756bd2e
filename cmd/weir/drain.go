package main

import (
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/kernel"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/why"
)

// sayDrain warns of limits on writes under which a group's memory fills with dirty data, before
// any writer is in the group or the limit is in force.
func (a *app) sayDrain(g cgroupfs.Group, d place.Decision) { a.sayDrainOf(memoryOf(g), g, d) }

// sayDrainOf is sayDrain for a group that will have so much memory; 0: no bound.
func (a *app) sayDrainOf(memory uint64, g cgroupfs.Group, decided place.Decision) {
	if memory == 0 {
		return
	}
	for _, p := range decided.Places {
		if !p.LimitsWrites() || p.Buffered.Mechanism != place.Writeback {
			continue
		}
		d := why.Device{Device: p.Device, Limit: p.Limit}
		if bdi, there, err := kernel.New(a.root).BDI(p.Device.Number); err == nil && there {
			d.BDI = &bdi
		}
		if took, slow := why.SlowDrain(memory, d); slow {
			a.out.Say("warning: the group may use %s of memory, and dirty data of that size takes %s to reach %s at this limit: a buffered writer will stall, hang or be OOM-killed; weir why cgroup:%s says what helps",
				limit.FormatMeasured(float64(memory)), why.Seconds(took), p.Device.Node, g.Path())
		}
	}
}

// memoryOf is the smallest bound on a group's memory, its own or one above; 0 if there is
// none, or none can be read.
func memoryOf(g cgroupfs.Group) uint64 {
	least := uint64(0)
	for ; !g.IsRoot(); g = g.Parent() {
		m, there, err := g.Memory()
		if err != nil || !there {
			continue
		}
		for _, n := range []uint64{m.Max, m.High} {
			if n != 0 && (least == 0 || n < least) {
				least = n
			}
		}
	}
	return least
}
