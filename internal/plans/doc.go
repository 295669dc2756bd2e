// Package plans reads plans and assignments: files → which limits a target is to have. It is pure:
// it gets the text of the files and the facts of a target, and opens nothing. A configuration is
// taken whole or not at all; each refusal has its file, line and column.
//
// A container's own label counts only if allow-labels has the plan. The published JSON schema and
// the parser are tested against each other, file by file.
package plans

import (
	"fmt"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// None is the name for "no plan". No plan can have it.
const None = "none"

// The bounds of a configuration. What is larger is refused.
const (
	FileBytesMax   = 1 << 20 // of one file
	FilesMax       = 256
	plansMax       = 1000 // in all files
	assignmentsMax = 10_000
	onMax          = 64 // places of one plan
	labelsMax      = 32 // of one assignment
	nameMax        = 63 // bytes of a plan's name
	textMax        = 4096
	depthMax       = 8 // of lists and mappings in each other; a right file has 5
	refusalsMax    = 20
)

// A File is one file of a configuration.
type File struct {
	Name string // as messages have it
	Text []byte
}

// A Position is a place in a file, from 1 on. Column 0: it is not known; Line 0: the whole file.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// A Refusal says what is wrong with a file, and where.
type Refusal struct {
	At   Position
	Text string
}

func (e *Refusal) Error() string { return e.At.String() + ": " + e.Text }

// Class makes it fault.WrongUse.
func (e *Refusal) Class() fault.Class { return fault.WrongUse }

// A Config is a configuration that was taken.
type Config struct {
	Files       []string // that it was read from
	Plans       []Plan   // in the order of the files
	Assignments []Assignment
	AllowLabels []string // plans that a target may choose by its own label
	Default     string   // the plan of containers, pods and domains that nothing else is for; None: none
	// Annotated says that pods are to be asked for their annotations also if no plan is for pods.
	// It is no part of the files: the agent sets it where it serves a container runtime.
	Annotated bool
}

// A Plan is a named set of limits, with those of the plans that it extends.
type Plan struct {
	Name    string
	At      Position
	Extends string      // empty: nothing
	Limit   limit.Limit // on every disk that the target has mounted; may be unset
	// On are the limits on places. Where one leads to a disk that the target has mounted, its
	// rates take the place of Limit's there.
	On []limit.Asked
}

// Plan finds a plan by its name.
func (c *Config) Plan(name string) (Plan, bool) {
	for _, p := range c.Plans {
		if p.Name == name {
			return p, true
		}
	}
	return Plan{}, false
}

// Names are the names of all plans, in the order of the files.
func (c *Config) Names() (names []string) {
	for _, p := range c.Plans {
		names = append(names, p.Name)
	}
	return names
}
