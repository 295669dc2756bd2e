package api

import (
	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Show is weir show's document.
type Show struct {
	Schema
	WindowSeconds float64     `json:"window_seconds"` // 0: rates were not measured
	Groups        []ShowGroup `json:"groups"`
}

// A ShowGroup is a group with its limits.
type ShowGroup struct {
	Target    string        `json:"target"`
	Cgroup    string        `json:"cgroup"`
	Version   int           `json:"cgroup_version"`
	Owner     targets.Owner `json:"owner"`
	Processes int           `json:"processes"`
	Devices   []ShowDevice  `json:"devices"`
	// Recorded is what the owner stores for the target, beside the limits in force.
	Recorded *[]Recorded `json:"recorded,omitempty"`
	// Paced is what weir's pacer holds of the group's buffered writes, in bytes a second.
	Paced uint64 `json:"paced_wbps,omitempty"`
	// Escapes is what it holds of what the kernel charges to other groups, with the group's own,
	// in bytes a second (cgroup v2).
	Escapes uint64 `json:"paced_escapes_wbps,omitempty"`
	// Lapsed is why it holds nothing of the group, though it was asked to.
	Lapsed string `json:"paced_lapsed,omitempty"`
	// Missed says which processes of the group the pacer cannot pause, or what it cannot count, and why.
	Missed string `json:"paced_missed,omitempty"`
	// Space is what the target's own files may take, and take.
	Space *quota.Status `json:"space,omitempty"`
	// Kept is what weir has on record for the target's next start.
	Kept []Kept `json:"kept,omitempty"`
	// Plan is the target's plan.
	Plan *ShowPlan `json:"plan,omitempty"`
}

// A ShowPlan is the plan of a target.
type ShowPlan struct {
	Plan    string `json:"plan"`
	By      string `json:"by"`
	Differs bool   `json:"differs"` // the limits in force are not the plan's
}

// A ShowDevice is a device with a group's limits.
type ShowDevice struct {
	Device string        `json:"device"`
	Number blkdev.Number `json:"number"`
	Limit  limit.Limit   `json:"limit"`
	// Expected is what is to hold the limit, by how the I/O is done, and Foreign what is to hold
	// writes over files of other groups; null: they are no question of their own.
	Expected []place.Cell `json:"expected"`
	Foreign  *place.By    `json:"foreign"`
	Rates    *watch.Rates `json:"rates"`            // null: not measured, or the kernel counts nothing for the device
	Volume   string       `json:"volume,omitempty"` // the name of the weir volume on this device
}

// A Recorded is a limit that a target's owner keeps.
type Recorded struct {
	Device string         `json:"device"` // as the owner spells it
	Number *blkdev.Number `json:"number"` // null: it is not known which device that is
	Limit  limit.Limit    `json:"limit"`
}

// A Kept is a limit on weir's record.
type Kept struct {
	On    string      `json:"on"` // empty: every disk of the target's mounts
	Limit limit.Limit `json:"limit"`
	Hold  limit.Hold  `json:"hold"`
}

// KeptOf makes the entries of limits on record.
func KeptOf(entries []limit.Asked) []Kept {
	var list []Kept
	for _, e := range entries {
		d := Kept{e.On, e.Limit, e.Hold}
		if d.Hold == "" {
			d.Hold = limit.HoldAuto // what weir set does where nothing else is named
		}
		list = append(list, d)
	}
	return list
}

// ShowOf makes the document of what was found.
func ShowOf(s limiting.Shown) Show {
	doc := Show{Schema: SchemaOf("show"), WindowSeconds: s.Window.Seconds(), Groups: []ShowGroup{}}
	for _, g := range s.Groups {
		one := ShowGroup{Target: g.Target, Cgroup: g.Path, Version: int(g.Version), Owner: g.Owner, Processes: g.Processes, Devices: []ShowDevice{},
			Paced: g.Paced, Escapes: g.Escapes, Lapsed: g.Lapsed, Missed: g.Missed, Space: g.Space, Kept: KeptOf(g.Kept)}
		for _, d := range g.Devices {
			device := ShowDevice{Device: d.Node, Number: d.Number, Limit: d.Limit, Expected: []place.Cell{}, Rates: d.Rates, Volume: d.Volume}
			if d.Expected != nil {
				device.Expected, device.Foreign = d.Expected.Cells(), d.Expected.Foreign
			}
			one.Devices = append(one.Devices, device)
		}
		if g.Record != nil {
			list := []Recorded{}
			for _, l := range g.Record.Limits {
				recorded := Recorded{Device: l.Path, Limit: l.Limit}
				if l.Err == nil {
					recorded.Number = &l.Device
				}
				list = append(list, recorded)
			}
			one.Recorded = &list
		}
		if g.Plan != nil {
			one.Plan = &ShowPlan{g.Plan.Name, g.Plan.By, g.Plan.Differs}
		}
		doc.Groups = append(doc.Groups, one)
	}
	return doc
}
