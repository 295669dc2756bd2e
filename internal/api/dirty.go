package api

import (
	"github.com/weir-io/weir/internal/dirty"
	"github.com/weir-io/weir/internal/kernel"
)

// A Dirty is the document of weir trace --dirty.
type Dirty struct {
	Schema
	Target   *string          `json:"target"`
	Cgroup   *string          `json:"memory_cgroup"`
	Version  int              `json:"memory_cgroup_version"`
	Seconds  float64          `json:"seconds"`
	Settings DirtySettings    `json:"settings"`
	Bounded  []kernel.Bounded `json:"bounded"`
	Host     dirty.Summary    `json:"host"`
	Group    *dirty.Summary   `json:"group"`
	Readings []DirtyReading   `json:"readings"`
	Words    []string         `json:"words"`
}

// DirtySettings are the six settings vm.dirty_*. Of a ratio and its bytes one is in force: the
// other is 0.
type DirtySettings struct {
	BackgroundRatio uint64  `json:"dirty_background_ratio"`
	BackgroundBytes uint64  `json:"dirty_background_bytes"`
	Ratio           uint64  `json:"dirty_ratio"`
	Bytes           uint64  `json:"dirty_bytes"`
	Expire          float64 `json:"dirty_expire_seconds"`
	Writeback       float64 `json:"dirty_writeback_seconds"`
}

// A DirtyReading is one look.
type DirtyReading struct {
	At    float64      `json:"at_seconds"`
	Host  dirty.Count  `json:"host"`
	Group *dirty.Count `json:"group"`
}

// DirtyOf makes the document of what was seen of dirty pages.
func DirtyOf(r dirty.Report) Dirty {
	s := r.Settings
	doc := Dirty{Schema: SchemaOf("trace.dirty"), Seconds: r.Took().Seconds(), Bounded: append([]kernel.Bounded{}, r.Bounded...),
		Settings: DirtySettings{s.BackgroundRatio, s.BackgroundBytes, s.Ratio, s.Bytes, s.Expire.Seconds(), s.Writeback.Seconds()},
		Host:     dirty.Host(r.Readings), Group: dirty.Group(r.Readings), Words: r.Words()}
	if r.Target != nil {
		name := r.Target.String()
		doc.Target = &name
	}
	if r.Group != nil {
		path := r.Group.Path()
		doc.Cgroup, doc.Version = &path, int(r.Group.Hierarchy().Version)
	}
	for _, each := range r.Readings {
		doc.Readings = append(doc.Readings, DirtyReading{each.At.Seconds(), each.Host, each.Group})
	}
	return doc
}
