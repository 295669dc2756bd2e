package why

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/weir-io/weir/internal/base/peek"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/linux/pagecache"
	"github.com/weir-io/weir/internal/place"
)

// Gather reads all facts of a question once, for Judge. A place without a block device is a
// fact; a place that does not exist is an error.
func Gather(ctx context.Context, s Sources, q Question) (Facts, error) {
	var f Facts
	host := kernel.New(s.Root)
	if err := f.readKernel(host, s.Unpack); err != nil {
		return f, err
	}
	for _, h := range s.Groups.Hierarchies() {
		f.Mounted = append(f.Mounted, mountedOf(h))
	}
	f.Systemd, f.Remote, f.Hold = s.SystemdRuns, s.Root != "/", q.Hold
	if s.Hierarchy == nil {
		if e := (*fault.Unsupported)(nil); errors.As(s.WhyNone, &e) {
			f.WhyNone = *e
		}
		return f, nil
	}
	io := mountedOf(s.Hierarchy)
	f.IO = &io
	group, err := toMake(s.Hierarchy)
	if err != nil {
		return f, err
	}
	if q.Target != nil {
		f.Target, group = q.Target.String(), q.Target.Group
	}
	if f.NoThrottle, err = group.NoThrottle(); err != nil && !fault.IsUnsupported(err) {
		return f, err
	}
	if f.Group, err = readGroup(ctx, s, q, group); err != nil {
		return f, err
	}
	if err := f.readSwaps(ctx, s.Root, host); err != nil {
		return f, err
	}
	if len(f.Swaps) > 0 && q.Target != nil {
		if err := f.Group.readSwapped(group, host); err != nil {
			return f, err
		}
	}
	return f, f.readPlaces(ctx, s, q, group, host)
}

// toMake is a group below the root that does not exist, to answer questions about a group that
// weir will make.
func toMake(h *cgroupfs.Hierarchy) (cgroupfs.Group, error) { return h.Root().Child("weir-new") }

func mountedOf(h *cgroupfs.Hierarchy) Mounted {
	m := Mounted{Version: int(h.Version), At: h.MountPoint, Controllers: []string{}, ReadOnly: h.ReadOnly()}
	for _, c := range h.Controllers {
		if c != "rw" && c != "ro" { // v1's come from the mount's options
			m.Controllers = append(m.Controllers, c)
		}
	}
	return m
}

// readKernel reads what it can: a fixture, or a container, may lack any of it.
func (f *Facts) readKernel(host kernel.FS, unpack kernel.Unpack) error {
	var err error
	if f.Release, err = host.Release(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if f.Config, err = host.Config(f.Release, unpack); err != nil {
		return err
	}
	dirty, there, err := host.Dirty()
	if err != nil {
		return err
	}
	if there {
		f.Dirty = &dirty
	}
	return nil
}

// readSwaps finds the devices of the areas of swap. One whose file is not there is left out.
func (f *Facts) readSwaps(ctx context.Context, root string, host kernel.FS) error {
	areas, err := host.Swaps()
	devices := blkdev.New(root)
	for _, area := range areas {
		if c, err := devices.Resolve(ctx, area.File); err == nil {
			f.Swaps = append(f.Swaps, SwapArea{area.File, c.Devices})
		}
	}
	return errors.Join(err, ctx.Err())
}

// readPlaces takes what was asked to devices, and reads those.
func (f *Facts) readPlaces(ctx context.Context, s Sources, q Question, group cgroupfs.Group, host kernel.FS) error {
	devices := blkdev.New(s.Root)
	asked := q.Places
	if len(asked) == 0 {
		asked = []place.Spot{{}}
	}
	for _, spot := range asked {
		spots := []place.Spot{spot}
		if len(spot.Chain.Devices) == 0 {
			var skipped []blkdev.Skipped
			var err error
			if spots, skipped, err = place.Find(ctx, devices, []limit.Asked{spot.Asked}, f.Group.Views); err != nil {
				return err
			}
			f.addWithout(skipped)
		}
		for _, at := range spots {
			p := Place{Spec: at.Asked.On, Named: true, Chain: at.Chain, Err: at.Err}
			if at.Asked.On == "" {
				p.Spec, p.Named = at.Chain.Spec, false
			}
			if err := f.addPlace(s, group, host, p, at.Asked.Limit); err != nil {
				return err
			}
		}
		f.AllDisks = f.AllDisks || spot.Asked.On == ""
	}
	return f.readOwners(ctx, s, q)
}

// addWithout notes mounts that hold files and are on no block device.
func (f *Facts) addWithout(skipped []blkdev.Skipped) {
	for _, skip := range skipped {
		var none *blkdev.NoBlockDeviceError
		if errors.As(skip.Err, &none) {
			f.Without = append(f.Without, Place{Spec: skip.Mount.Point, Err: none, FS: &skip.Mount})
		}
	}
}

func (f *Facts) addPlace(s Sources, group cgroupfs.Group, host kernel.FS, p Place, asked limit.Limit) error {
	if m, ok := p.Chain.FileSystem(); ok {
		p.FS = &m
	}
	p.readFile(s.Root)
	if p.Err != nil {
		f.Places = append(f.Places, p)
		return nil
	}
	writes := place.ControllerOf(group, f.Release).Writes(p.FS)
	p.Writeback, p.WhyNot = writes.Buffered, writes.Why
	for _, d := range p.Chain.Devices {
		inForce := ruleOn(f.Group.Rules, d.Number)
		device := Device{Device: d, InForce: inForce, Limit: inForce.Overlay(asked), Asked: notInForce(asked, inForce)}
		device.Above = f.Group.boundAbove(d.Number, device.Limit)
		device.Limit = device.Limit.Overlay(device.Above)
		bdi, there, err := host.BDI(d.Number)
		if err != nil {
			return err
		}
		if there {
			device.BDI = &bdi
		}
		if device.Queue, err = host.Queue(d.Number); err != nil {
			return err
		}
		p.Devices = append(p.Devices, device)
	}
	f.Places = append(f.Places, p)
	return nil
}

// readFile looks at the regular file that was named. What the kernel does not tell this
// user of it is not known.
func (p *Place) readFile(root string) {
	if !p.Named || p.FS == nil {
		return
	}
	spec := p.Spec
	if !filepath.IsAbs(spec) && root == "/" {
		abs, err := filepath.Abs(spec)
		if err != nil {
			return
		}
		spec = abs
	}
	name := filepath.Join(root, spec)
	st, err := os.Stat(name)
	if err != nil || !st.Mode().IsRegular() {
		return
	}
	p.File, p.Size, p.Cached = spec, st.Size(), -1
	f, err := peek.Open(name)
	if err != nil {
		return
	}
	defer f.Close()
	if r, err := pagecache.Resident(f, 0, 0); err == nil {
		p.Cached = min(r.Cached, p.Size)
	}
}

// notInForce are the rates of a limit that differ from those in force.
func notInForce(asked, inForce limit.Limit) limit.Limit {
	for _, k := range limit.Keys {
		if asked.Get(k) == inForce.Get(k) {
			asked = asked.With(k, limit.Rate{})
		}
	}
	return asked
}

// ruleOn is the rule of a device, unset if there is none.
func ruleOn(rules []cgroupfs.Rule, dev blkdev.Number) limit.Limit {
	for _, r := range rules {
		if r.Device == dev {
			return r.Limit
		}
	}
	return limit.Limit{}
}
