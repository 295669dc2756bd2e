package api

import (
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Why is weir why's document.
type Why struct {
	Schema
	// Supposed is true if nothing is limited and no limit was named: the matrix then says what a
	// limit would hold.
	Supposed bool           `json:"supposed"`
	Target   string         `json:"target,omitempty"` // as it was named, with its kind; empty: a group that weir would make
	Group    *WhyGroup      `json:"group"`            // null: this host has no group that could have a limit
	Kernel   string         `json:"kernel"`           // its release; empty: not known
	Mounted  []WhyHierarchy `json:"hierarchies"`
	Places   []WhyPlace     `json:"places"`
	Matrix   []WhyCell      `json:"matrix"`
	Findings []Finding      `json:"findings"`
	Dirty    *WhyDirty      `json:"dirty"`            // null: not known
	Mended   []Moved        `json:"mended,omitempty"` // with --mend
}

// A WhyGroup is the group that the limits are of.
type WhyGroup struct {
	Path      string        `json:"cgroup"`
	Version   int           `json:"cgroup_version"`
	Owner     targets.Owner `json:"owner"`
	Processes int           `json:"processes"`
}

// A WhyHierarchy is a mounted tree of cgroups.
type WhyHierarchy struct {
	Version     int      `json:"cgroup_version"`
	At          string   `json:"mount_point"`
	Controllers []string `json:"controllers"`
	ReadOnly    bool     `json:"read_only"`
}

// A WhyPlace is a path or a device that was named, or a mount of the target.
type WhyPlace struct {
	Spec    string      `json:"place"`
	Chain   string      `json:"chain"` // the way to the devices, for people
	Devices []WhyDevice `json:"devices"`
}

// A WhyDevice is a device with the limit that was named for it or, for the rates that were not,
// that is in force.
type WhyDevice struct {
	Device string        `json:"device"`
	Number blkdev.Number `json:"number"`
	Limit  limit.Limit   `json:"limit"`
}

// A WhyCell is one entry of the matrix.
type WhyCell struct {
	Place     int             `json:"place"` // index of Places
	Path      load.Path       `json:"path"`
	Read      bool            `json:"read"`
	Held      why.Held        `json:"expected"`
	Mechanism place.Mechanism `json:"mechanism"` // empty unless it holds
	Findings  []int           `json:"findings"`  // their numbers
}

// WhyDirty is the host's dirty pages: settings, thresholds and current amounts.
type WhyDirty struct {
	BackgroundRatio   uint64  `json:"background_ratio"` // percent
	BackgroundBytes   uint64  `json:"background_bytes"`
	Ratio             uint64  `json:"ratio"`
	Bytes             uint64  `json:"bytes"`
	ExpireSeconds     float64 `json:"expire_seconds"`
	WritebackSeconds  float64 `json:"writeback_seconds"`
	BackgroundAtBytes uint64  `json:"background_at_bytes"` // what they come to; 0: not known
	LimitAtBytes      uint64  `json:"limit_at_bytes"`
	DirtyNowBytes     uint64  `json:"dirty_now_bytes"`
	WritebackNowBytes uint64  `json:"writeback_now_bytes"`
}

// A Finding is one reason why a limit holds or does not.
type Finding struct {
	Number   int          `json:"number"` // from 1, in the order of severity
	Code     string       `json:"code"`   // stable
	Severity why.Severity `json:"severity"`
	Text     string       `json:"text"` // one sentence
	Evidence []Evidence   `json:"evidence"`
	Fixes    []Fix        `json:"fixes"` // a choice; empty: nothing can be done about it here
}

// Evidence is what was read on this host.
type Evidence struct {
	File  string `json:"file"`
	Value string `json:"value"`
}

// A Fix is one way out.
type Fix struct {
	Text  string   `json:"text"`
	Lines []string `json:"lines"` // to paste into a root shell; empty: nothing to paste
}

// WhyOf makes the document of a report, and of the files that were moved before it.
func WhyOf(r why.Report, mended []Moved) Why {
	doc := Why{Schema: SchemaOf("why"), Supposed: r.Supposed, Target: r.Target, Kernel: r.Kernel, Mended: mended,
		Mounted: list(r.Mounted, func(m why.Mounted) WhyHierarchy {
			return WhyHierarchy{m.Version, m.At, append([]string{}, m.Controllers...), m.ReadOnly}
		}), Places: list(r.Places, whyPlaceOf),
		Matrix: list(r.Matrix, func(c why.Cell) WhyCell {
			return WhyCell{c.Place, c.Path, c.Read, c.Held, c.Mechanism, append([]int{}, c.Findings...)}
		}), Findings: list(r.Findings, findingOf)}
	if r.Group != nil {
		group := WhyGroup(*r.Group)
		doc.Group = &group
	}
	if r.Dirty != nil {
		dirty := WhyDirty(*r.Dirty)
		doc.Dirty = &dirty
	}
	return doc
}

func whyPlaceOf(p why.PlaceID) WhyPlace {
	return WhyPlace{p.Spec, p.Chain, list(p.Devices, func(d why.DeviceID) WhyDevice { return WhyDevice(d) })}
}

func findingOf(f why.Finding) Finding {
	return Finding{Number: f.Number, Code: f.Code, Severity: f.Severity, Text: f.Text, Evidence: list(f.Evidence, func(e why.Evidence) Evidence { return Evidence(e) }),
		Fixes: list(f.Fixes, func(x why.Fix) Fix { return Fix{x.Text, append([]string{}, x.Lines...)} })}
}
