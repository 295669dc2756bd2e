package api

import (
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
)

// A History is weir history's document.
type History struct {
	Schema
	Target      string         `json:"target"`
	Cgroup      string         `json:"cgroup"`
	From        time.Time      `json:"from"` // what was asked for
	To          time.Time      `json:"to"`
	StepSeconds float64        `json:"step_seconds"` // between two points, where all were recorded
	Points      []HistoryPoint `json:"points"`
}

// A HistoryPoint is what the group did on a device in the time that ended then.
type HistoryPoint struct {
	Time          time.Time     `json:"time"`
	WindowSeconds float64       `json:"window_seconds"`
	Device        string        `json:"device"`
	Number        blkdev.Number `json:"number"`
	Rates         *watch.Rates  `json:"rates"` // null: not known
	Limit         limit.Limit   `json:"limit"`
	SomePercent   *float64      `json:"some_percent"` // of the window; null: the kernel does not say
	FullPercent   *float64      `json:"full_percent"`
	Dirty         *uint64       `json:"dirty_bytes"`
}

// HistoryOf makes the document of a series.
func HistoryOf(s watch.Series, from, to time.Time) History {
	doc := History{Schema: SchemaOf("history"), Target: s.Target, Cgroup: s.Cgroup, From: from, To: to, StepSeconds: s.Step.Seconds(), Points: []HistoryPoint{}}
	for _, p := range s.Points {
		one := HistoryPoint{Time: p.At, WindowSeconds: p.Window.Seconds(), Device: p.Device.Node, Number: p.Device.Number, Rates: p.Device.Rates, Limit: p.Device.Limit}
		if p.Pressure != nil {
			one.SomePercent, one.FullPercent = &p.Pressure.Some, &p.Pressure.Full
		}
		if p.Memory != nil {
			one.Dirty = &p.Memory.Dirty
		}
		doc.Points = append(doc.Points, one)
	}
	return doc
}
