package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/target"
)

// A recordedDocument is a limit that a target's owner keeps.
type recordedDocument struct {
	Device string         `json:"device"` // as the owner spells it
	Number *blkdev.Number `json:"number"` // null: it is not known which device that is
	Limit  limit.Limit    `json:"limit"`
}

// errNoDevice says that systemd's own way from a path to a device was not found.
var errNoDevice = errors.New("it is not known which device that is")

// setRecord adds what the owner stores to the limits in force.
func (g *showGroup) setRecord(r *target.Record) {
	if r == nil {
		return
	}
	list := []recordedDocument{}
	for _, l := range r.Limits {
		doc := recordedDocument{Device: l.Path, Limit: l.Limit}
		if l.Err == nil {
			doc.Number = &l.Device
		}
		list = append(list, doc)
	}
	g.Recorded, g.record = &list, r
}

// onlyRecorded are the devices that the owner keeps limits for, and that have none.
func (g *showGroup) onlyRecorded() []showDevice {
	if g.record == nil {
		return nil
	}
	var only []showDevice
	for _, l := range g.record.Limits {
		known := func(d showDevice) bool { return d.Number == l.Device }
		if l.Err == nil && !slices.ContainsFunc(g.Devices, known) && !slices.ContainsFunc(only, known) {
			only = append(only, showDevice{Device: l.Path, Number: l.Device}) // nothing is in force
		}
	}
	return only
}

// recordLines say what of the record is in no table.
func recordLines(r *target.Record) []string {
	if r == nil {
		return nil
	}
	if len(r.Limits) == 0 {
		return []string{fmt.Sprintf("  %s keeps no limit", r.By)}
	}
	var lines []string
	for _, l := range r.Limits {
		if l.Err != nil {
			lines = append(lines, fmt.Sprintf("  %s keeps %s on %s: %v", r.By, l.Limit, l.Path, l.Err))
			continue
		}
		another := func(o target.Recorded) bool { return o.Err == nil && o.Device == l.Device && o.Path != l.Path }
		if slices.ContainsFunc(r.Limits, another) {
			lines = append(lines, fmt.Sprintf("  %s keeps %s on %s, which has another name there too", r.By, l.Limit, l.Path))
		}
	}
	return lines
}

// formatBound formats a rate for people; "none" if there is none.
func formatBound(r limit.Rate, k limit.Key) string {
	if _, bound := r.Number(); !bound {
		return "none"
	}
	return r.Format(k)
}
