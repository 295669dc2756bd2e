package tally

import (
	"path/filepath"
	"slices"
)

// daemons are programs that have a daemon do the work, in a group of its own.
var daemons = []string{"at", "batch", "docker", "docker-compose", "nerdctl", "podman", "systemd-run"}

// handedMost is how much such a program may write itself.
const handedMost = 64 << 10

// HandedOn reports whether a command is known to hand its work to a daemon, and did so: its
// processes wrote nothing that a limit on writes could apply to.
func (s Sum) HandedOn(command string) bool {
	if !slices.Contains(daemons, filepath.Base(command)) || s.Written > handedMost {
		return false
	}
	return !slices.ContainsFunc(s.Devices, func(d Device) bool { return d.Charged.WrittenBytes > handedMost })
}
