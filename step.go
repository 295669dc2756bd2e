package weir

import (
	"fmt"

	"github.com/weir-io/weir/internal/act/hold"
)

// A Step is one action of a dry run. Each has one of Mkdir, File, Unit, Pace, Command and Call.
type Step struct {
	Mkdir    string // a cgroup to make: its directory
	File     string // a file to write Line to, or without a Line to remove
	Line     string
	Unit     string // a systemd unit to set Property of
	Property string
	Persist  bool   // the property stays over boots
	Pace     *Pace  // a request to the pacer
	Command  string // a program to run, with its arguments, as a shell spells them
	Call     string // what the kernel is asked by a system call, in words
}

// A Pace is a request to the pacer.
type Pace struct {
	Cgroup  string   // the group's path
	WBPS    uint64   // bytes per second that its processes may write; 0: the pacer releases the group
	Devices []string // numbers: "254:16"
	// Escapes is true if the pacer pauses the group only for writes that the kernel charges to
	// other groups.
	Escapes bool
}

// String is the step in words, for people.
func (s Step) String() string {
	switch {
	case s.Mkdir != "":
		return "make cgroup " + s.Mkdir
	case s.Unit != "":
		return fmt.Sprintf("systemd: set %s of %s", s.Property, s.Unit)
	case s.Command != "":
		return "run " + s.Command
	case s.Call != "":
		return s.Call
	case s.Pace != nil && s.Pace.WBPS == 0:
		return "pacer: release cgroup " + s.Pace.Cgroup
	case s.Pace != nil:
		return fmt.Sprintf("pacer: hold cgroup %s to %d B/s", s.Pace.Cgroup, s.Pace.WBPS)
	case s.Line == "":
		return "remove " + s.File
	}
	return fmt.Sprintf("write %q to %s", s.Line, s.File)
}

func stepsOf(steps []hold.Step) []Step {
	var all []Step
	for _, s := range steps {
		one := Step{Mkdir: s.Mkdir, File: s.File, Line: s.Line, Unit: s.Unit, Property: s.Property, Persist: s.Persist, Command: s.Command, Call: s.Call}
		if p := s.Pace; p != nil {
			one.Pace = &Pace{Cgroup: p.Cgroup, WBPS: p.WBPS, Escapes: p.Escapes}
			for _, d := range p.Devices {
				one.Pace.Devices = append(one.Pace.Devices, d.String())
			}
		}
		all = append(all, one)
	}
	return all
}
