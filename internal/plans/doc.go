// Package plans has plans and assignments: a configuration and the facts of a target → which plan
// the target has. It is pure, and opens nothing. Package planfile reads a configuration from the
// text of its files. A container's own label counts only if allow-labels has the plan.
package plans

import (
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// None is the name for "no plan". No plan can have it.
const None = "none"

// The bounds of what a configuration is read from.
const (
	FileBytesMax = 1 << 20 // of one file
	FilesMax     = 256
)

// A File is one file of a configuration.
type File struct {
	Name string // as messages have it
	Text []byte
}

// A Reader reads files, in their order, into a configuration. Its errors are made of *Refusal.
type Reader func([]File) (*Config, error)

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

// An Assignment says which targets a plan is for: those that all of it is true of.
type Assignment struct {
	At   Position
	Plan string // None: they have none
	// Kind is the kind of targets; empty: containers and pods of all kinds. "user" are the slices
	// of systemd's users.
	Kind      string
	Name      string // a pattern (path.Match); empty: any
	Namespace string // a pattern of a pod's namespace; empty: any
	From, To  uint32 // the numbers of users
	Labels    map[string]string
}

// Labelled reports whether targets of a kind have labels.
func Labelled(kind string) bool {
	return slices.Contains([]string{"docker", "podman", "containerd", "pod"}, kind)
}
