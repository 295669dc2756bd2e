package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/inode"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/pacer"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/plain"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/target/cgroup"
	"github.com/weir-io/weir/internal/target/containerd"
	"github.com/weir-io/weir/internal/target/engine"
	"github.com/weir-io/weir/internal/target/pid"
	"github.com/weir-io/weir/internal/target/pod"
	"github.com/weir-io/weir/internal/target/unit"
	"github.com/weir-io/weir/internal/target/vm"
)

// An app is what all verbs share: the flags that are the same everywhere, and the
// host they speak of.
type app struct {
	out     cli.Out
	root    string
	version string // --cgroup

	hosts map[string]string // where kinds are asked, instead of where the environment says

	fs    *cgroupfs.FS
	state state.Dir

	inodes    *inode.Reader // see owners
	inodesErr error
}

// cgroupFlag adds --cgroup to a verb.
func (a *app) cgroupFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.version, "cgroup", "auto", "cgroup `VERSION` to use: v1, v2 or auto")
}

func (a *app) want() (cgroupfs.Version, error) {
	switch a.version {
	case "", "auto":
		return 0, nil
	case "v1":
		return cgroupfs.V1, nil
	case "v2":
		return cgroupfs.V2, nil
	}
	return 0, cli.Usagef("--cgroup %q: write v1, v2 or auto", a.version)
}

// open finds the host's hierarchies, and cleans up what dead weirs left. What cannot
// be cleaned up is said, and is no reason not to go on.
func (a *app) open() error {
	if a.fs != nil {
		return nil
	}
	fs, err := cgroupfs.Open(a.root)
	if err != nil {
		return err
	}
	a.fs, a.state = fs, state.At(a.root)
	if a.root == "/" {
		if err := a.sweep(); err != nil {
			a.out.Say("clean up after a killed weir: %v", err)
		}
	}
	return nil
}

func (a *app) sweep() error {
	var undone error
	if some, err := a.state.Any(); some || err != nil {
		undone = errors.Join(err, a.holder().Undo(a.fs), launch.Sweep(a.state, a.fs))
	}
	return errors.Join(undone, pacer.Sweep(a.state, a.fs), a.volumes(nil).Sweep())
}

func (a *app) close() {
	if a.inodes != nil {
		_ = a.inodes.Close()
	}
	if a.fs != nil {
		_ = a.fs.Close()
		if a.root == "/" {
			_ = a.state.Tidy() // else the next weir does
		}
	}
}

// io returns the hierarchy that limits are set in.
func (a *app) io() (*cgroupfs.Hierarchy, error) {
	want, err := a.want()
	if err != nil {
		return nil, err
	}
	if err := a.open(); err != nil {
		return nil, err
	}
	return a.fs.IO(want)
}

func (a *app) kinds(h *cgroupfs.Hierarchy) []target.Kind {
	systemdRuns := systemd.Running(a.root)
	kinds := []target.Kind{
		pid.Kind{FS: a.fs, Hierarchy: h, SystemdRuns: systemdRuns},
		cgroup.Kind{Hierarchy: h, SystemdRuns: systemdRuns},
		unit.Kind{Hierarchy: h, SystemdRuns: systemdRuns, Connect: a.unitManager()},
	}
	for _, m := range engine.Makers() {
		kinds = append(kinds, a.containers(m, h))
	}
	return append(kinds, a.containerd(h), a.pods(h), a.machines(h))
}

func (a *app) pods(h *cgroupfs.Hierarchy) pod.Kind {
	return pod.Kind{FS: a.fs, Hierarchy: h, SystemdRuns: systemd.Running(a.root), Root: a.root, Endpoint: os.Getenv("CONTAINER_RUNTIME_ENDPOINT")}
}

// hostOf is the address of a kind's owner, if that is not its usual socket.
func (a *app) hostOf(kind string) string {
	if host, is := a.hosts[kind]; is {
		return host
	}
	if kind == "containerd" {
		return os.Getenv("CONTAINERD_ADDRESS") // as ctr has it
	}
	for _, m := range engine.Makers() {
		if m.Kind() == kind {
			return m.Host()
		}
	}
	return ""
}

func (a *app) containerd(h *cgroupfs.Hierarchy) containerd.Kind {
	return containerd.Kind{FS: a.fs, Hierarchy: h, SystemdRuns: systemd.Running(a.root), Root: a.root, Address: a.hostOf("containerd")}
}

func (a *app) machines(h *cgroupfs.Hierarchy) vm.Kind {
	return vm.Kind{FS: a.fs, Hierarchy: h, SystemdRuns: systemd.Running(a.root), Root: a.root}
}

func (a *app) containers(m engine.Maker, h *cgroupfs.Hierarchy) engine.Kind {
	return engine.Kind{Maker: m, FS: a.fs, Hierarchy: h, Devices: blkdev.New(a.root), SystemdRuns: systemd.Running(a.root), Root: a.root, Host: a.hostOf(m.Kind())}
}

// unitManager returns how systemd is asked for units; nil below another root, whose
// systemd is not this one.
func (a *app) unitManager() func(context.Context) (unit.Manager, error) {
	if a.root != "/" {
		return nil
	}
	return func(ctx context.Context) (unit.Manager, error) {
		conn, err := systemd.Connect(ctx)
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
}

func (a *app) target(ctx context.Context, spec string) (target.Target, error) {
	h, err := a.io()
	if err != nil {
		return target.Target{}, err
	}
	t, err := target.Resolve(ctx, a.kinds(h), spec)
	var misspelt *target.NameError
	if errors.As(err, &misspelt) {
		return t, cli.Usagef("%v", err)
	}
	return t, err
}

func (a *app) holder() hold.Holder {
	return hold.Holder{State: a.state, Connect: systemd.Connect, Pacer: a.pacer()}
}

// place finds the devices of limits. Those without a place go on every disk that the mounts
// of some processes are on; 0 is weir itself.
func (a *app) place(ctx context.Context, asked []limit.Asked, views []int) ([]place.Placed, error) {
	all, skipped, err := place.Place(ctx, blkdev.New(a.root), asked, views)
	for _, s := range skipped {
		a.out.Say("note: no limit on %s: %s", plain.Brief(s.Mount.Point), s.Reason)
	}
	return all, err
}

func (a *app) deciding() place.Host { return place.Host{Root: a.root, FS: a.fs, State: a.state} }

// explain says which device each place resolved to, and what is expected to hold there.
func (a *app) explain(d place.Decision) {
	for _, e := range d.Places {
		a.out.Say("%s: %s (%s)", e.Limit, e.Chain, e.Device.Number)
		for _, note := range e.Chain.Notes {
			a.out.Say("note: %s", note)
		}
		for _, line := range e.Lines() {
			a.out.Say("%s", line)
		}
	}
	for _, note := range d.Notes() {
		a.out.Say("%s", note)
	}
}

// dryRunDocument is the JSON of --dry-run (docs/json.md).
type dryRunDocument struct {
	cli.Schema
	Steps []hold.Step `json:"steps"`
}

// dryRun prints what would be done.
func (a *app) dryRun(verb string, steps []hold.Step) error {
	if a.out.JSON {
		return a.out.Document(dryRunDocument{cli.SchemaOf(verb + ".dry-run"), append([]hold.Step{}, steps...)})
	}
	for _, s := range steps {
		switch {
		case s.Unit != "" && s.Persist:
			a.out.Print("systemd: set %s of %s, and keep it over boots", s.Property, s.Unit)
		case s.Unit != "":
			a.out.Print("systemd: set %s of %s", s.Property, s.Unit)
		case s.Command != "":
			a.out.Print("run %s", s.Command)
		case s.File != "" && s.Line == "":
			a.out.Print("remove %s", s.File)
		case s.Pace != nil && s.Pace.WBPS == 0:
			a.out.Print("pacer: release cgroup %s", s.Pace.Cgroup)
		case s.Pace != nil && s.Pace.Escapes:
			a.out.Print("pacer: hold the writes of cgroup %s to other groups' files, together with all its writes, at %s", s.Pace.Cgroup, limit.PerSecond(s.Pace.WBPS).Format(limit.WBPS))
		case s.Pace != nil:
			a.out.Print("pacer: hold the buffered writes of cgroup %s at %s", s.Pace.Cgroup, limit.PerSecond(s.Pace.WBPS).Format(limit.WBPS))
		case s.Mkdir != "":
			a.out.Print("mkdir %s", s.Mkdir)
		default:
			a.out.Print("write %q to %s", s.Line, s.File)
		}
	}
	return nil
}

func describe(t target.Target) string {
	return fmt.Sprintf("%s (cgroup %s, %s, owner %s)", t, t.Group.Path(), t.Group.Hierarchy().Version, t.Owner)
}
