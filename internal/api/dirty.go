package api

import (
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/dirty"
)

// A Dirty is the document of weir trace --dirty.
type Dirty struct {
	Schema
	Target   *string        `json:"target"`
	Cgroup   *string        `json:"memory_cgroup"`
	Version  int            `json:"memory_cgroup_version"`
	Seconds  float64        `json:"seconds"`
	Settings DirtySettings  `json:"settings"`
	Bounded  []DirtyBound   `json:"bounded"`
	Host     DirtySummary   `json:"host"`
	Group    *DirtySummary  `json:"group"`
	Readings []DirtyReading `json:"readings"`
	Words    []string       `json:"words"`
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
	At    float64     `json:"at_seconds"`
	Host  DirtyCount  `json:"host"`
	Group *DirtyCount `json:"group"`
}

// A DirtyCount is how much is dirty and how much is in writeback.
type DirtyCount struct {
	Dirty     uint64 `json:"dirty_bytes"`
	Writeback uint64 `json:"writeback_bytes"`
}

// DirtyLevels are the thresholds for both together.
type DirtyLevels struct {
	Background uint64 `json:"background_bytes"` // from there on the flusher writes back
	Throttle   uint64 `json:"throttle_bytes"`   // from there on writers wait a little
	Limit      uint64 `json:"limit_bytes"`      // where they wait until it is less
}

// A DirtySummary is what the readings of the host or the group come to.
type DirtySummary struct {
	Peak      DirtyCount   `json:"peak"`               // of the reading whose sum was the largest
	Levels    *DirtyLevels `json:"levels"`             // of that reading; null: not known, or none
	Share     *float64     `json:"share_of_limit"`     // null: the limit is not known, or there is none
	Throttled *int         `json:"throttled_readings"` // null: no reading's thresholds are known
	Readings  int          `json:"readings"`
}

// A DirtyBound is a device whose dirty pages have a bound of their own.
type DirtyBound struct {
	Name       string  `json:"bdi"`
	Strict     bool    `json:"strict"`
	MinPercent uint64  `json:"min_percent"` // of the host's threshold
	MaxPercent uint64  `json:"max_percent"`
	MaxBytes   *uint64 `json:"max_bytes"` // null: not known
}

// DirtyOf makes the document of what was seen of dirty pages.
func DirtyOf(r dirty.Report) Dirty {
	s := r.Settings
	doc := Dirty{Schema: SchemaOf("trace.dirty"), Seconds: r.Took().Seconds(), Bounded: list(r.Bounded, dirtyBoundOf),
		Settings: DirtySettings{s.BackgroundRatio, s.BackgroundBytes, s.Ratio, s.Bytes, s.Expire.Seconds(), s.Writeback.Seconds()},
		Host:     dirtySummaryOf(dirty.Host(r.Readings)), Words: r.Words(), Readings: list(r.Readings, dirtyReadingOf)}
	if group := dirty.Group(r.Readings); group != nil {
		summary := dirtySummaryOf(*group)
		doc.Group = &summary
	}
	if r.Target != nil {
		name := r.Target.String()
		doc.Target = &name
	}
	if r.Group != nil {
		path := r.Group.Path()
		doc.Cgroup, doc.Version = &path, int(r.Group.Hierarchy().Version)
	}
	return doc
}

func dirtyBoundOf(b kernel.Bounded) DirtyBound {
	return DirtyBound{b.Name, b.Strict, b.MinPercent, b.MaxPercent, known(b.MaxBytes, b.MaxBytes > 0)}
}

func dirtySummaryOf(s dirty.Summary) DirtySummary {
	limited := s.Levels != nil && s.Levels.Limit > 0
	doc := DirtySummary{Peak: DirtyCount(s.Peak), Share: known(s.Share, limited), Throttled: known(s.Throttled, s.Judged > 0), Readings: s.Readings}
	if s.Levels != nil {
		levels := DirtyLevels(*s.Levels)
		doc.Levels = &levels
	}
	return doc
}

func dirtyReadingOf(r dirty.Reading) DirtyReading {
	doc := DirtyReading{At: r.At.Seconds(), Host: DirtyCount(r.Host)}
	if r.Group != nil {
		group := DirtyCount(*r.Group)
		doc.Group = &group
	}
	return doc
}
