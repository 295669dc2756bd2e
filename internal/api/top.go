package api

import (
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Top is weir top's document.
type Top struct {
	Schema
	Time          time.Time    `json:"time"`
	WindowSeconds float64      `json:"window_seconds"` // that rates are over
	Version       int          `json:"cgroup_version"`
	Source        TopSource    `json:"source"`
	Watched       int          `json:"watched"`
	Unread        int          `json:"unread"`
	Unreadable    string       `json:"unreadable"` // why the first of these could not be read
	Pressure      *TopPressure `json:"pressure"`   // null: the kernel does not say
	Disks         []TopDisk    `json:"disks"`
	Groups        []TopGroup   `json:"groups"`
}

// The programs that read what a Top has.
const (
	FromWeird   = "weird"
	FromTop     = "weir"
	FromHistory = "history"
)

// A TopSource says who has read the figures.
type TopSource struct {
	From    string `json:"from"`
	Version string `json:"version"` // of weird; empty: it was not weird
	Why     string `json:"why"`     // why it was not weird, although weird was asked
}

// A TopPressure is for how long tasks waited for I/O.
type TopPressure struct {
	SomeSeconds float64  `json:"some_seconds"` // in all
	FullSeconds float64  `json:"full_seconds"`
	SomePercent *float64 `json:"some_percent"` // of the window; null: not known
	FullPercent *float64 `json:"full_percent"`
}

// A TopDisk is a disk with what all did on it.
type TopDisk struct {
	Device     string          `json:"device"`
	Number     blkdev.Number   `json:"number"`
	Below      []blkdev.Number `json:"below"` // the disks that it stands on directly
	Total      blkdev.Counters `json:"total"`
	Rates      *watch.Rates    `json:"rates"` // null: not known
	InFlight   uint64          `json:"in_flight"`
	UsePercent float64         `json:"use_percent"`
	Queue      float64         `json:"queue"`
}

// A TopGroup is a group with its I/O on each device.
type TopGroup struct {
	Target   string        `json:"target"`
	Cgroup   string        `json:"cgroup"`
	Owner    targets.Owner `json:"owner"`
	Devices  []TopDevice   `json:"devices"`
	Pressure *TopPressure  `json:"pressure"` // null: the kernel does not say
	Dirty    *uint64       `json:"dirty_bytes"`
	// Writeback is the part of Dirty that is being written.
	Writeback *uint64   `json:"writeback_bytes"`
	Paced     *TopPaced `json:"paced"` // null: weir's pacer holds nothing of the group
	Plan      *string   `json:"plan"`  // null: none is for the group, or it is not known
	// Held is what weird run has measured of the limits, as in weir.agent; null: it tells nothing.
	Held *AgentHeld `json:"held"`
}

// A TopPaced is what weir's pacer holds of a group.
type TopPaced struct {
	WBPS    uint64 `json:"wbps"`
	Escapes bool   `json:"escapes"`
	Lapsed  string `json:"lapsed"`
	Missed  string `json:"missed"`
	// PausedSeconds is for how long it has paused the group in all, and PausedPercent its share of the
	// time since weir asked it before. null: it does not say.
	PausedSeconds *float64 `json:"paused_seconds"`
	PausedPercent *float64 `json:"paused_percent"`
}

// A TopDevice is a device with what one group did on it.
type TopDevice struct {
	Device  string          `json:"device"`
	Number  blkdev.Number   `json:"number"`
	Below   []blkdev.Number `json:"below"`   // the disks that it stands on directly
	Total   *cgroupfs.Stat  `json:"total"`   // null: the kernel counts nothing for the device
	Rates   *watch.Rates    `json:"rates"`   // null: not known
	Limit   limit.Limit     `json:"limit"`   // the group's own
	Percent TopPercent      `json:"percent"` // of the limit
	// Expected is what is expected to hold the limit, and Foreign what is to hold writes to other
	// groups' files, as in weir.show.
	Expected []place.Cell `json:"expected"`
	Foreign  *place.By    `json:"foreign"`
}

// A TopPercent is each rate in percent of its limit; null: there is no limit, or no rate.
type TopPercent struct {
	RBPS  *float64 `json:"rbps"`
	WBPS  *float64 `json:"wbps"`
	RIOPS *float64 `json:"riops"`
	WIOPS *float64 `json:"wiops"`
}

// A TopBeside is what is known beside a snapshot; the maps are by the groups' paths.
type TopBeside struct {
	Source TopSource
	Plans  map[string]string // their names
	Held   func(path string) *AgentHeld
}

// TopOf makes the document of a snapshot. takes says which groups it has; nil: all.
func TopOf(s *watch.Snapshot, takes func(*watch.Group) bool, b TopBeside) Top {
	doc := topHeadOf(s, b)
	for _, g := range s.Groups {
		if takes == nil || takes(g) {
			doc.Groups = append(doc.Groups, b.group(g))
		}
	}
	return doc
}

// topHeadOf is the document without its groups.
func topHeadOf(s *watch.Snapshot, b TopBeside) Top {
	doc := Top{Schema: SchemaOf("top"), Time: s.At, WindowSeconds: s.Window.Seconds(), Version: int(s.Version), Source: b.Source, Watched: s.Watched, Unread: s.Unread,
		Pressure: topPressureOf(s.Pressure), Disks: []TopDisk{}, Groups: []TopGroup{}}
	if s.Unreadable != nil {
		doc.Unreadable = s.Unreadable.Error()
	}
	for _, d := range s.Disks {
		doc.Disks = append(doc.Disks, TopDisk{d.Node, d.Number, numbers(d.Below), d.Total.Counters, d.Rates, d.Total.InFlight, d.Use, d.Queue})
	}
	return doc
}

func (b TopBeside) group(g *watch.Group) TopGroup {
	one := topGroupOf(g)
	if plan, is := b.Plans[g.Path]; is {
		one.Plan = &plan
	}
	if b.Held != nil {
		one.Held = b.Held(g.Path)
	}
	return one
}

// numbers are never null in JSON.
func numbers(all []blkdev.Number) []blkdev.Number { return append([]blkdev.Number{}, all...) }

func topGroupOf(g *watch.Group) TopGroup {
	one := TopGroup{Target: g.Target, Cgroup: g.Path, Owner: g.Owner, Devices: []TopDevice{}, Pressure: topPressureOf(g.Pressure)}
	if m := g.Memory; m != nil {
		one.Dirty, one.Writeback = &m.Dirty, &m.Writeback
	}
	if p := g.Paced; p != nil {
		one.Paced = &TopPaced{WBPS: p.WBPS, Escapes: p.Escapes, Lapsed: p.Lapsed, Missed: p.Missed}
		if was := g.Paused; was != nil {
			total := was.Total.Seconds()
			one.Paced.PausedSeconds = &total
			if was.Known {
				one.Paced.PausedPercent = &was.Share
			}
		}
	}
	for _, d := range g.Devices {
		device := TopDevice{Device: d.Node, Number: d.Number, Below: numbers(d.Below), Rates: d.Rates, Limit: d.Limit, Expected: []place.Cell{}}
		if d.Counted {
			device.Total = &d.Total
		}
		if d.Expected != nil {
			device.Expected, device.Foreign = d.Expected.Cells(), d.Expected.Foreign
		}
		for k, into := range map[limit.Key]**float64{limit.RBPS: &device.Percent.RBPS, limit.WBPS: &device.Percent.WBPS, limit.RIOPS: &device.Percent.RIOPS, limit.WIOPS: &device.Percent.WIOPS} {
			if p, known := d.Percent(k); known {
				*into = &p
			}
		}
		one.Devices = append(one.Devices, device)
	}
	return one
}

func topPressureOf(p *watch.Pressure) *TopPressure {
	if p == nil {
		return nil
	}
	doc := &TopPressure{SomeSeconds: p.Total.Some.Seconds(), FullSeconds: p.Total.Full.Seconds()}
	if p.Known {
		doc.SomePercent, doc.FullPercent = &p.Some, &p.Full
	}
	return doc
}
