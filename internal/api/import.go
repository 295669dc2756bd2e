package api

import (
	"github.com/weir-io/weir/internal/cgconfig"
	"github.com/weir-io/weir/internal/limit"
)

// An Import is the document of weir import.
type Import struct {
	Schema
	Applied bool            `json:"applied"` // --apply: see each group's error
	Groups  []ImportGroup   `json:"groups"`
	LeftOut []cgconfig.Note `json:"left_out"`
}

// An ImportGroup is a group that the configuration limits.
type ImportGroup struct {
	Target  string         `json:"target"`
	File    string         `json:"file"` // that has it
	Line    int            `json:"line"` // of the file
	Command string         `json:"command"`
	Devices []ImportDevice `json:"devices"`
	Error   string         `json:"error"` // why its limits were not set
}

// An ImportDevice is a device with the group's limit on it.
type ImportDevice struct {
	Number string      `json:"number"`
	Limit  limit.Limit `json:"limit"`
}

// ImportOf makes the document of a configuration without any group yet.
func ImportOf(applied bool, leftOut []cgconfig.Note) Import {
	return Import{Schema: SchemaOf("import"), Applied: applied, Groups: []ImportGroup{}, LeftOut: append([]cgconfig.Note{}, leftOut...)}
}

// ImportGroupOf makes the entry of a group: the command that sets its limits, and why they were
// not set; nil: they were, or it was not tried.
func ImportGroupOf(g cgconfig.Group, command string, err error) ImportGroup {
	entry := ImportGroup{Target: g.Target(), File: g.File, Line: g.Line, Command: command}
	for _, l := range g.Limits {
		entry.Devices = append(entry.Devices, ImportDevice{l.On, l.Limit})
	}
	if err != nil {
		entry.Error = err.Error()
	}
	return entry
}
