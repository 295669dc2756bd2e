package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/inode"
	"github.com/weir-io/weir/internal/kernel"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/pacer"
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
	cmd.Flags().StringVar(&a.version, "cgroup", "auto", "which cgroup `VERSION` to use: v1, v2 or auto")
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
			a.out.Say("clean up after a dead weir: %v", err)
		}
	}
	return nil
}

func (a *app) sweep() error {
	return errors.Join(hold.Undo(a.state, a.fs), launch.Sweep(a.state, a.fs), pacer.Sweep(a.state, a.fs), a.volumes(nil).Sweep())
}

func (a *app) close() {
	if a.inodes != nil {
		_ = a.inodes.Close()
	}
	if a.fs != nil {
		_ = a.fs.Close()
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

// hostOf is where a kind's owner is asked, if that is not its usual socket.
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

func (a *app) holder() hold.Holder { return hold.Holder{State: a.state, Connect: systemd.Connect} }

// A placed limit is a limit with the devices it goes on.
type placed struct {
	chain blkdev.Chain
	hold.Change
	device blkdev.Device
}

// place finds the devices of limits. Those without a place go on every disk that the
// mounts of some processes are on; 0 is weir itself.
func (a *app) place(ctx context.Context, limits []cli.OnLimit, views []int) ([]placed, error) {
	devices := blkdev.New(a.root)
	var all []placed
	for _, l := range limits {
		var chains []blkdev.Chain
		var err error
		if l.On == "" {
			var skipped []blkdev.Skipped
			chains, skipped, err = devices.OfMounts(ctx, views...)
			if err == nil && len(chains) == 0 {
				err = noDisks(skipped)
			}
			for _, s := range skipped {
				a.out.Say("note: no limit on %s: %s", plain.Brief(s.Mount.Point), s.Reason)
			}
		} else {
			var chain blkdev.Chain
			chain, err = devices.Resolve(ctx, l.On)
			chains = []blkdev.Chain{chain}
		}
		if err != nil {
			return nil, err
		}
		for _, chain := range chains {
			for _, dev := range chain.Devices {
				p := placed{chain: chain, device: dev, Change: hold.Change{Device: dev.Number, Limit: l.Limit}}
				if all, err = add(all, p); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// noDisks says why no mount leads to a device.
func noDisks(skipped []blkdev.Skipped) error {
	e := &cgroupfs.Unsupported{Feature: "limit disk I/O", Reason: "none of the target's mounts is on a block device", Remedy: "name a device with --on"}
	if len(skipped) > 0 {
		e.Reason += " (" + skipped[0].Reason + ")"
	}
	return e
}

// add joins limits that came to one device, as places on two of its partitions do. A
// rate that they put differently is wrong use.
func add(all []placed, p placed) ([]placed, error) {
	i := slices.IndexFunc(all, func(q placed) bool { return q.device.Number == p.device.Number })
	if i < 0 {
		return append(all, p), nil
	}
	first := &all[i]
	for _, k := range limit.Keys {
		was, is := first.Limit.Get(k), p.Limit.Get(k)
		if was.IsSet() && is.IsSet() && was != is {
			return nil, cli.Usagef("%s and %s are both on %s, and a device has one %s limit: %s, or %s",
				first.chain.Spec, p.chain.Spec, p.device.Node, k.Direction(), was.Format(k), is.Format(k))
		}
	}
	first.Limit = first.Limit.Overlay(p.Limit)
	if first.chain.Spec != p.chain.Spec {
		first.chain.Notes = append(first.chain.Notes, fmt.Sprintf("%s is on %s too: one limit binds both together", p.chain.Spec, p.device.Node))
	}
	return all, nil
}

func changes(all []placed) []hold.Change {
	var list []hold.Change
	for _, p := range all {
		list = append(list, p.Change)
	}
	return list
}

// explainPlaces says which device each place came to, and what will hold there.
func (a *app) explainPlaces(g cgroupfs.Group, all []placed, paced bool) {
	if a.out.Quiet { // what holds takes several files to tell
		return
	}
	for _, p := range all {
		a.out.Say("%s: %s (%s)", p.Limit, p.chain, p.device.Number)
		for _, note := range p.chain.Notes {
			a.out.Say("note: %s", note)
		}
		switch {
		case paced && p.limitsWrites() && a.expect(g, p).Sync:
			a.out.Say("direct and synchronous writes held (cgroup %s)", g.Hierarchy().Version)
		case paced: // then all writes go through the page cache
		case p.limitsWrites():
			a.out.Say("%s", a.expect(g, p).Line(g.Hierarchy()))
		}
	}
	if paced {
		a.sayPaced(all)
	}
}

func (p placed) limitsWrites() bool {
	_, bytes := p.Limit.WBPS.Number()
	_, ops := p.Limit.WIOPS.Number()
	return bytes || ops
}

// expect says which of a group's writes will be held at a place, also by what binds
// everybody's writes to the device.
func (a *app) expect(g cgroupfs.Group, p placed) hold.Expectation {
	e := p.expect(g)
	if e.Buffered || !e.Sync || g.Hierarchy().Version != cgroupfs.V1 {
		return e
	}
	if bound := a.rootBound(g.Hierarchy(), p.device.Number); bound.Covers(p.Limit) {
		return e.ByRoot(bound)
	}
	return e
}

// rootBound is what binds all writes to a device on v1; on v2, and where it cannot be read,
// nothing.
func (a *app) rootBound(h *cgroupfs.Hierarchy, dev blkdev.Number) (bound hold.RootBound) {
	if h.Version != cgroupfs.V1 {
		return bound
	}
	rule, err := h.Root().Rule(dev)
	if err != nil {
		return bound
	}
	bound.Rule = rule
	if bdi, there, err := kernel.New(a.root).BDI(dev); err == nil && there {
		bound.BDI = &bdi
	}
	return bound
}

// expect says which of the group's writes the kernel will hold there.
func (p placed) expect(g cgroupfs.Group) hold.Expectation {
	var fs *blkdev.Mount
	if m, ok := p.chain.FileSystem(); ok {
		fs = &m
	}
	return hold.Expect(g, fs)
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
			a.out.Print("systemd: set %s of %s, also after a boot", s.Property, s.Unit)
		case s.Unit != "":
			a.out.Print("systemd: set %s of %s", s.Property, s.Unit)
		case s.Command != "":
			a.out.Print("run %s", s.Command)
		case s.File != "" && s.Line == "":
			a.out.Print("remove %s", s.File)
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
