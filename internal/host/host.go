package host

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/daemon/helper"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
)

// Options say which machine to open.
type Options struct {
	// Root is where the machine's files are: "/" for the one that weir runs on, or a directory
	// with a copy of its /proc and /sys. A copy is read and never written.
	Root string
	// Version is the version of cgroups to set limits in; 0: the one that has a controller of
	// disk I/O.
	Version cgroupfs.Version
	// Sockets are the addresses of the daemons of kinds of targets ("docker", "podman",
	// "containerd", "pod"), in the spelling of DOCKER_HOST and its like. A kind that is not here,
	// or has an empty address, has its usual socket.
	Sockets map[string]string
	// Program returns the path of the weir that units run. nil: units cannot be made.
	Program func() (string, error)
	// Helpers starts the helpers that load BPF programs. Without, nothing is done that takes them.
	Helpers helper.Starter
	// Systemd connects to the machine's systemd; nil: systemd.Connect, which reaches that of the
	// machine that weir runs on.
	Systemd func(context.Context) (*systemd.Conn, error)
}

// A Host is one machine, opened. Its methods may be called from one goroutine at a time.
type Host struct {
	Root  string
	FS    *cgroupfs.FS
	State state.Dir
	// Helpers starts the helpers that load BPF programs and read YAML.
	Helpers helper.Starter

	version cgroupfs.Version
	sockets map[string]string
	program func() (string, error)
	owners  *owners
	line    *systemd.Line
	runs    func() bool // see SystemdRuns
	devices *blkdev.FS  // nil: see ForMany
}

// Open finds the machine's hierarchies. It changes nothing.
func Open(o Options) (*Host, error) {
	fs, err := cgroupfs.Open(o.Root)
	if err != nil {
		return nil, err
	}
	return &Host{Root: o.Root, FS: fs, State: state.At(o.Root), Helpers: o.Helpers, version: o.Version, sockets: maps.Clone(o.Sockets), program: o.Program, owners: &owners{}, line: &systemd.Line{Dial: o.Systemd},
		runs: sync.OnceValue(func() bool { return systemd.Running(o.Root) })}, nil
}

// IsOwn reports whether the host is the machine that weir runs on, and not a copy of its files.
// A copy's daemons cannot be asked, and nothing of it is changed.
func (h *Host) IsOwn() bool { return h.Root == "/" }

// With returns the same host, where one kind of targets has its daemon at another socket. Only
// the first host is to be closed.
func (h *Host) With(kind, socket string) *Host {
	other := *h
	if other.sockets = maps.Clone(h.sockets); other.sockets == nil {
		other.sockets = map[string]string{}
	}
	other.sockets[kind] = socket
	return &other
}

// Socket is the address of a kind's daemon as the options have it; empty: the usual one.
func (h *Host) Socket(kind string) string { return h.sockets[kind] }

// Program is the path of the weir that units run, as a unit can have it.
func (h *Host) Program() (string, error) {
	if h.program == nil {
		return "", errors.New("find weir itself: its path is not known here")
	}
	path, err := h.program()
	if err != nil {
		return "", fmt.Errorf("find weir itself: %w", err)
	}
	return path, plain.Value("the path of weir itself", path)
}

// IO returns the hierarchy that limits are set in. If there is none, the error is a
// *fault.Unsupported.
func (h *Host) IO() (*cgroupfs.Hierarchy, error) { return h.FS.IO(h.version) }

// Sweep takes back what dead weirs left half done, and removes what they left behind. A copy of a
// machine has nothing of that kind. An error is no reason not to go on: the next Sweep tries
// again.
func (h *Host) Sweep() error {
	if !h.IsOwn() {
		return nil
	}
	var undone error
	if some, err := h.State.Any(); some || err != nil {
		undone = errors.Join(err, h.Holder().Undo(h.FS), launch.Sweep(h.State, h.FS))
	}
	return errors.Join(undone, pacer.Sweep(h.State, h.FS), h.Volumes(nil).Sweep())
}

// Refresh finds the hierarchies anew, after something was mounted or unmounted. Groups and
// targets from before must not be used any more.
func (h *Host) Refresh() error {
	fs, err := cgroupfs.Open(h.Root)
	if err != nil {
		return err
	}
	err = h.FS.Close()
	h.FS = fs
	return errors.Join(err, h.owners.close())
}

// Close ends the use of the host.
func (h *Host) Close() error {
	err := errors.Join(h.owners.close(), h.line.Close(), h.FS.Close())
	if h.IsOwn() {
		err = errors.Join(err, h.State.Tidy()) // else the next weir does
	}
	return err
}
