// Package weir sets, shows, clears, explains and proves limits on disk I/O, for Go programs that
// run containers, services or virtual machines of others. It does what the command line's weir
// set, clear, show, why and prove do for a target, and gives values instead of text.
//
// A target is spelled as on the command line: "docker:NAME", "podman:NAME",
// "containerd:NAMESPACE/ID", "pod:NAMESPACE/NAME" or "pod:UID", "vm:NAME", "unit:NAME",
// "pid:NUMBER" or "cgroup:/PATH".
//
// # Helpers
//
// weir needs processes of its own: a pacer, which holds buffered writes where the kernel does not,
// loads, with which Prove measures, and what reads with BPF which group the kernel charges a file
// to, which Why tells. It starts them as the program that uses this package. Such
// a program calls RunHelper first in main, and passes the result to Open. Without that, a Host
// shows and explains, but for that, and refuses to change or to load the machine.
//
// # Stability
//
// Versions follow semantic versioning, and Version is also that of the commands. Stable are the
// exported names, and the words in the values: mechanisms, verdicts, reasons, and the codes of
// notes and findings. Later versions may add fields, words and codes, so a program ignores those
// that it does not know. They may change every Text and Why, and the texts of errors: those are for
// people. Before 1.0 a minor version may change all of this, and CHANGELOG.md says so.
package weir

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
)

// Version is the version of this package, and of the commands that are built with it.
const Version = "0.1.0"

// Unlimited is a rate without a bound. It also removes a limit.
const Unlimited uint64 = math.MaxUint64

// Options say which machine to open. The zero Options are for the machine that the program runs
// on, but change nothing of it, because they have no Helpers.
type Options struct {
	// Helpers is what RunHelper has returned. Without it Set, Clear and Prove are refused, except
	// for dry runs and for Prove with Observe.
	Helpers Helpers
	// Root is a directory with a copy of a machine's /proc and /sys, for tests. A copy is read and
	// never written, its daemons cannot be asked, and no loads run on it. Empty: the machine that
	// the program runs on.
	Root string
	// CgroupVersion is the version of cgroups to set limits in, 1 or 2; 0: the one that has a
	// controller of disk I/O.
	CgroupVersion int
	// Sockets are the addresses of daemons, by the kind of targets that they know: "docker" and
	// "podman" (as in DOCKER_HOST: "unix:///PATH"), "containerd" ("/PATH") and "pod"
	// ("unix:///PATH"). A kind that is not here has its usual socket. This package reads no
	// environment variables.
	Sockets map[string]string
	// Program is the path of the weir command. On cgroup v1 systemd runs it to set a saved limit
	// when a service starts. Empty: such limits cannot be saved.
	Program string
}

// A Host is one machine, opened. Its methods may be called from one goroutine at a time; a program
// with several opens a Host for each. It can stay open: targets and disks are found anew by each
// call.
type Host struct {
	host    *host.Host
	helpers Helpers
}

// Open finds the machine's cgroups. It changes nothing. If no cgroup has a controller of disk I/O,
// Open succeeds, Why says why, and the other methods return ErrNotPossible.
func Open(o Options) (*Host, error) {
	version := cgroupfs.Version(o.CgroupVersion)
	if version != 0 && version != cgroupfs.V1 && version != cgroupfs.V2 {
		return nil, told(fault.Misusef("cgroup version %d: there are 1 and 2", o.CgroupVersion), nil)
	}
	inner := host.Options{Root: "/", Version: version, Sockets: o.Sockets}
	if o.Root != "" {
		inner.Root = filepath.Clean(o.Root)
	}
	if o.Helpers.ready {
		inner.Helpers = helper.Of("a helper", "", nil)
	}
	if o.Program != "" {
		inner.Program = func() (string, error) { return o.Program, nil }
	}
	h, err := host.Open(inner)
	if err != nil {
		return nil, told(err, nil)
	}
	return &Host{h, o.Helpers}, nil
}

// Close ends the use of the host. Limits stay in force.
func (h *Host) Close() error { return told(h.host.Close(), nil) }

// ready refuses what needs helpers, if there are none, and cleans up after programs that were
// killed while they changed a limit.
func (h *Host) ready(what string) (notes []Note, err error) {
	if !h.host.IsOwn() {
		return nil, nil
	}
	if !h.helpers.ready {
		return nil, fault.Misusef("%s: weir cannot start its helpers as this program; call RunHelper first in main, and pass what it returns to Open", what)
	}
	if err := h.host.Sweep(); err != nil {
		notes = append(notes, Note{Code: "not-cleaned-up", Level: Notice, Text: fmt.Sprintf("clean up after a killed weir: %v", err)})
	}
	return notes, nil
}
