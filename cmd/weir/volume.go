package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/kernel"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/loopdev"
	"github.com/weir-io/weir/internal/target/unit"
	"github.com/weir-io/weir/internal/volume"
)

func newVolume(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "volume",
		Short: "Manage volumes: file systems with a size and an I/O limit",
		Long: "Manage volumes: file systems on block devices of their own. A limit on the device then holds everything that is\n" +
			"written there, including buffered writes on cgroup v1. Give a container or a virtual machine the directory where the\n" +
			"volume is mounted (docker run -v DIR:/data).\n\n" +
			"On cgroup v1 the limit is a rule of the root cgroup for that device. It holds everything that the kernel writes back\n" +
			"to the device. On Linux 6.2 and later, weir also bounds how much may wait in memory for the device, to half a second\n" +
			"of the limit. Direct and synchronous I/O of other cgroups needs a limit on those cgroups: --for TARGET, or weir set\n" +
			"TARGET --on DIR. On cgroup v2 all I/O needs that.",
		Args: cli.NoSuchVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newVolumeCreate(a), newVolumeAdopt(a), newVolumeList(a), newVolumeSet(a), newVolumeResize(a), newVolumeUp(a), newVolumeDown(a), newVolumeDelete(a), newVolumeForget(a))
	for _, c := range cmd.Commands() {
		switch c.Name() {
		case "set", "resize", "up", "down", "delete", "forget":
			c.ValidArgsFunction = a.completeVolume
		}
	}
	return cmd
}

// volumes returns the store of this host's volumes; h is the hierarchy of limits, or nil.
func (a *app) volumes(h *cgroupfs.Hierarchy) volume.Store {
	return volume.Store{Dir: volume.Dir, State: a.state, Holder: a.holder(), Devices: blkdev.New(a.root), Kernel: kernel.New(a.root), IO: h,
		Undo: func() error { return a.holder().Undo(a.fs) }}
}

// openVolumes is for verbs that change volumes. A host whose kernel limits nothing can have
// volumes without limits.
func (a *app) openVolumes() (volume.Store, error) {
	if a.root != "/" {
		return volume.Store{}, &cgroupfs.Unsupported{Feature: "volume with --root " + a.root, Reason: "volumes are this host's", Remedy: "leave out --root"}
	}
	if os.Geteuid() != 0 {
		return volume.Store{}, errors.New("volume: permission denied (it mounts file systems; run weir as root)")
	}
	h, err := a.io()
	var none *cgroupfs.Unsupported
	if errors.As(err, &none) {
		h, err = nil, a.open()
	}
	s := a.volumes(h)
	if none != nil {
		s.WhyNone = none
	}
	return s, err
}

// volumesDocument is the JSON of weir volume (docs/json.md).
type volumesDocument struct {
	cli.Schema
	Volumes []volumeDocument `json:"volumes"`
}

type volumeDocument struct {
	Name    string         `json:"name"`
	Mount   string         `json:"mount"`
	Image   string         `json:"image,omitempty"` // empty: adopted
	FS      string         `json:"fs"`
	Limit   limit.Limit    `json:"limit"`
	For     []string       `json:"for"`
	Adopted bool           `json:"adopted"`
	Up      bool           `json:"up"`
	Device  string         `json:"device,omitempty"`
	Number  *blkdev.Number `json:"number,omitempty"`
	Size    uint64         `json:"size_bytes"` // of the file or the file system; 0: not known
	Used    uint64         `json:"used_bytes"` // 0 while it is down
	Error   string         `json:"error,omitempty"`
}

func (a *app) volumeDocument(ctx context.Context, s volume.Store, v volume.Volume) volumeDocument {
	d := volumeDocument{Name: v.Name, Mount: v.Mount, Image: v.Image, FS: v.FS, Limit: v.Limit, For: append([]string{}, v.For...), Adopted: v.Adopted()}
	if st, err := os.Stat(v.Image); err == nil && v.Image != "" {
		d.Size = uint64(st.Size())
	}
	at, err := s.Where(v)
	if err != nil {
		d.Error = err.Error()
	}
	if !at.Up || err != nil {
		return d
	}
	d.Up, d.Number, d.Device = true, &at.Device, a.device(ctx, at.Device).Node
	var room unix.Statfs_t
	if err := unix.Statfs(v.Mount, &room); err == nil {
		d.Used = (room.Blocks - room.Bfree) * uint64(room.Bsize)
		if v.Adopted() {
			d.Size = room.Blocks * uint64(room.Bsize)
		}
	}
	return d
}

// reportVolumes ends a verb that changed some.
func (a *app) reportVolumes(ctx context.Context, s volume.Store, all ...volume.Volume) error {
	if !a.out.JSON {
		return nil
	}
	doc := volumesDocument{Schema: cli.SchemaOf("volume"), Volumes: []volumeDocument{}}
	for _, v := range all {
		doc.Volumes = append(doc.Volumes, a.volumeDocument(ctx, s, v))
	}
	return a.out.Document(doc)
}

// limitOf is the limit that a volume's flags name; there is at most one.
func limitOf(limits cli.Limits) (limit.Limit, error) {
	all, err := limits.Resolve()
	if err != nil || len(all) == 0 {
		return limit.Limit{}, err
	}
	return all[0].Limit, nil
}

// limitTargets sets the limit of a mounted volume on the targets that shall have it too. If the
// volume's limit is being changed, it includes the removed rates.
func (a *app) limitTargets(ctx context.Context, v volume.Volume, l limit.Limit) error {
	if l.IsZero() {
		return nil
	}
	quiet := *a
	quiet.out.JSON = false
	for _, spec := range v.For {
		if err := quiet.setLimits(ctx, spec, []limit.Asked{{On: v.Mount, Limit: l}}, setOptions{hold: limit.HoldAuto}); err != nil {
			return err
		}
	}
	return nil
}

// checkTargets refuses targets that are not there, before anything is made for them.
func (a *app) checkTargets(ctx context.Context, specs []string, l limit.Limit) error {
	if len(specs) > 0 && !l.Bounds() {
		return cli.Usagef("volume: --for %s names a target, but no limit is named; add --read, --write, --read-iops or --write-iops", specs[0])
	}
	for _, spec := range specs {
		t, err := a.target(ctx, spec)
		var none *unit.NoGroupError
		if errors.As(err, &none) {
			continue // systemd makes it one
		}
		if err != nil {
			return err
		}
		if err := alone(t, false); err != nil {
			return err
		}
		if t.Group.IsRoot() {
			return cli.Usagef("volume: --for %s is the root group: cgroup v1 limits it anyway, and cgroup v2 cannot limit it; leave it out", spec)
		}
	}
	return nil
}

// sayVolume says where a volume is, and what holds there.
func (a *app) sayVolume(ctx context.Context, s volume.Store, v volume.Volume, strict bool) {
	d := a.volumeDocument(ctx, s, v)
	on := ""
	if v.Image != "" {
		on = " on " + v.Image
	}
	a.out.Say("volume %s: %s %s at %s (%s%s)", v.Name, limit.FormatMeasured(float64(d.Size)), v.FS, v.Mount, d.Device, on)
	if d.Number != nil && v.Image != "" && !directIO(*d.Number) {
		a.out.Say("warning: the file system of %s has no direct I/O: data of the volume is in memory twice, and limits on that disk do not apply to it", v.Image)
	}
	if !v.Limit.Bounds() || s.IO == nil {
		return
	}
	flags := cli.Flags(limit.Asked{On: v.Mount, Limit: v.Limit})
	if s.IO.Version == cgroupfs.V2 {
		if len(v.For) == 0 {
			a.out.Say("cgroup v2 has no limit for a whole disk; limit the targets that use it: weir set TARGET %s", flags)
		}
		return
	}
	a.out.Say("%s: applies to all writeback to it, and to processes in the root group (cgroup v1)", v.Limit)
	if n, bound := volume.DirtyFor(v.Limit); bound && strict {
		a.out.Say("at most %s wait in memory, so writers are held too", limit.FormatMeasured(float64(n)))
	} else {
		a.sayAhead(bound)
	}
	if len(v.For) == 0 {
		a.out.Say("direct and synchronous I/O of other groups needs a limit on those groups: weir set TARGET %s", flags)
	}
}

// sayAhead warns of what waits in memory without a bound.
func (a *app) sayAhead(bytes bool) {
	if bytes {
		a.out.Say("warning: this kernel cannot bound what waits in memory for one disk (Linux 6.2 can): the disk is held, but writers run ahead in memory")
		return
	}
	a.out.Say("note: without --write, nothing bounds what waits in memory for the volume: the disk is held, but writers run ahead in memory")
}

// directIO reports whether a loop device does direct I/O on its file.
func directIO(dev blkdev.Number) bool {
	n, is := loopdev.Of(dev)
	return is && loopdev.DirectIO(n)
}
