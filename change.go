package weir

import (
	"context"
	"slices"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/place"
)

// A SetRequest says what to set.
type SetRequest struct {
	// Limits are the limits: at least one, each with at least one rate. Rates that are 0 stay as
	// they are.
	Limits []Limit
	// Hold is what is to hold buffered writes; empty: HoldAuto.
	Hold Hold
	// Whole allows to limit a process whose group other processes are in too, and the root group
	// of cgroup v1.
	Whole bool
	// Persist keeps the limits over restarts of the target and of the machine. Who keeps them
	// depends on the target: systemd, Docker, libvirt, or a record of weir. A process and a group
	// end with the machine, so nothing can keep their limits (ErrWrongUse).
	Persist bool
	// DryRun changes nothing: the Change has the Steps that would be done.
	DryRun bool
}

// A ClearRequest says what to remove.
type ClearRequest struct {
	On     []string // places, as in Limit; none: all limits of the target
	Whole  bool     // see SetRequest
	DryRun bool     // see SetRequest
}

// A Change is what Set or Clear has done, or in a dry run would do.
type Change struct {
	Target string // with its kind; empty in a dry run
	Group
	// Devices are those that were named. Limit is what is in force there now, as read back; in a
	// dry run it is what was asked for. A Change of Clear expects nothing, and in a dry run has no
	// devices.
	Devices []Device
	Notes   []Note
	Steps   []Step // of a dry run; empty otherwise
}

// A Group is the cgroup that limits are on.
type Group struct {
	Cgroup        string // its path below the mount point; empty: there is none, or it is not known
	CgroupVersion int    // 1 or 2; 0: there is none, or it is not known
	Owner         Owner
}

// An Owner is who made a group and writes its files.
type Owner struct {
	Kind string // "systemd", "docker", "podman", "libvirt", "weir", "kernel" (a root group) or "unknown"
	Name string // the unit, or the container's id; may be empty
}

// A Device is a block device with the limit of a group.
type Device struct {
	Node   string // "/dev/vdb"; of a device that is gone, its number
	Number string // "254:16"
	Limit  Rates  // 0: not known
	// Expected is what is expected to hold the limit, for each path of I/O that it applies to;
	// nil: that is not known.
	Expected []Expected
	// Foreign is what is expected to hold writes to files that the kernel charges to other groups
	// (cgroup v2); nil: there are no such writes.
	Foreign *Holding
	Rates   *Measured // of Show; nil: not measured, or the kernel counts nothing for the device
	Volume  string    // of Show: the name of the volume on the device that weir made; empty: there is none
}

// Expected is one path of I/O, with what is expected to hold the limit there.
type Expected struct {
	Path string // "direct", "sync", "buffered" or "mapped"
	Read bool   // or else a write
	Holding
}

// String is the path in words: "buffered writes".
func (e Expected) String() string {
	if e.Read {
		return e.Path + " reads"
	}
	return e.Path + " writes"
}

// A Holding is what is expected to hold a limit.
type Holding struct {
	// Mechanism is "throttle", "writeback", "pacer", "volume" or "root-throttle"; empty: nothing
	// holds it.
	Mechanism string
	// Ahead is true if only the disk is held: the writer runs ahead until memory is full.
	Ahead bool
	Why   string // why it is not held, or not all of it; empty if it is
}

// Measured are rates that were measured, per second.
type Measured struct {
	RBPS, WBPS   float64 // bytes
	RIOPS, WIOPS float64 // operations
}

// Set sets limits of a running target, all of them or none. On return they are in force, and were
// read back. The target's other limits stay.
//
// ErrNotFound: there is no such target. ErrWrongUse: a rate is out of its range, the request
// contradicts itself, or nothing can keep limits of that kind of target. ErrNotPossible: the target
// has no disk that the kernel can limit, or the host has no controller. ErrDenied: not root. A
// Change that comes with an error has the notes until then, and nothing else.
func (h *Host) Set(ctx context.Context, target string, r SetRequest) (Change, error) {
	c, err := h.change(ctx, "set "+target, r.DryRun, func(m limiting.Manager) (limiting.Change, error) {
		asked, err := askedOf(r.Limits, false)
		if err != nil {
			return nil, err
		}
		hold, err := r.Hold.inner()
		if err != nil {
			return nil, err
		}
		return m.PrepareSet(ctx, limiting.Request{Target: target, Asked: asked, Hold: hold, Whole: r.Whole, Persist: r.Persist, Foreign: true})
	})
	return c, told(err, c.Notes)
}

// Clear removes limits of a target, and those that are saved for its next start. The target need
// not run. It is no error if there are none. Errors are those of Set.
func (h *Host) Clear(ctx context.Context, target string, r ClearRequest) (Change, error) {
	c, err := h.change(ctx, "clear "+target, r.DryRun, func(m limiting.Manager) (limiting.Change, error) {
		return m.PrepareClear(ctx, target, r.On, r.Whole)
	})
	return c, told(err, c.Notes)
}

// change prepares a change, and applies it or lists its steps.
func (h *Host) change(ctx context.Context, what string, dry bool, prepare func(limiting.Manager) (limiting.Change, error)) (c Change, err error) {
	if !dry {
		if c.Notes, err = h.ready(what); err != nil {
			return c, err
		}
	}
	change, err := prepare(limiting.Manager{Host: h.host})
	if err != nil {
		c.Notes = append(c.Notes, notesOf(limiting.NotesOf(err))...)
		return c, err
	}
	if dry {
		preview, err := change.Steps(ctx)
		c.Notes = notesOf(preview.Notes)
		if err == nil {
			c.previewed(preview)
		}
		return c, err
	}
	result, err := change.Apply(ctx)
	c.Notes = append(c.Notes, notesOf(result.Noted)...)
	if err == nil {
		err = c.done(result)
	}
	return c, err
}

func (c *Change) previewed(p limiting.Preview) {
	for _, e := range p.Decided.Places {
		c.Devices = append(c.Devices, deviceOf(e, e.Limit))
	}
	c.Notes = append(c.Notes, notesOf(p.Decided.Notes())...)
	c.Steps = stepsOf(p.Steps)
}

func (c *Change) done(r limiting.Result) error {
	devices, err := r.Devices()
	if err != nil {
		return err
	}
	c.Target, c.Group = r.Target, Group{Cgroup: r.Path, CgroupVersion: int(r.Version), Owner: Owner{r.Owner.Kind, r.Owner.Name}}
	for _, d := range devices {
		c.Devices = append(c.Devices, deviceOf(d.Expected, d.Limit))
	}
	c.Notes = slices.Concat(c.Notes, notesOf(r.Decided.Notes()), notesOf(r.Notes))
	return nil
}

// deviceOf is a device with a limit and with what is expected to hold it.
func deviceOf(e place.Expected, l limit.Limit) Device {
	d := Device{Node: e.Device.Node, Number: e.Device.Number.String(), Limit: ratesOf(l)}
	d.expect(e)
	return d
}

func (d *Device) expect(e place.Expected) {
	for _, c := range e.Cells() {
		d.Expected = append(d.Expected, Expected{c.Path, c.Read, Holding{string(c.Mechanism), c.Ahead, c.Why}})
	}
	if f := e.Foreign; f != nil {
		d.Foreign = &Holding{string(f.Mechanism), f.Ahead, f.Why}
	}
}
