package systemd

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A PathLimit is a unit's limit for one path. systemd keeps an entry for each name of a device,
// and writes each as a whole line of io.max. If two entries mean the same device, the one
// written last wins, with all four rates. Up to systemd 252 that is the entry that was set
// first, from 254 on the other.
type PathLimit struct {
	Path    string
	Devices []blkdev.Number // see devicesOf
	Limit   limit.Limit     // rates that no setting names are unlimited
	Own     bool            // a file of the unit's own has the path, so that systemd never forgets it
	Kept    bool            // systemd was told to keep a rate of the path over boots
}

// IOLimits reads the four limits of a unit, in the order in which systemd has them.
func (c *Conn) IOLimits(ctx context.Context, unit string) ([]PathLimit, error) {
	var all []PathLimit
	var asked [len(propertyNames)]*dbus.Call
	for _, k := range limit.Keys { // all at once: each answer may take a turn of the scheduler
		asked[k] = c.bus.Object(busName, ObjectOf(unit)).GoWithContext(ctx, propsIf+".Get", 0, make(chan *dbus.Call, 1), interfaceOf(unit), propertyNames[k])
	}
	for _, k := range limit.Keys {
		var v dbus.Variant
		var rates []deviceRate
		err := (<-asked[k].Done).Store(&v)
		if err == nil {
			err = v.Store(&rates)
		}
		if err != nil {
			return nil, fmt.Errorf("read limits of unit %s: read %s: %w", unit, propertyNames[k], err)
		}
		all = addRates(all, k, rates)
	}
	for i := range all {
		all[i].Devices = devicesOf(ctx, blkdev.New(c.root), all[i].Path)
	}
	if len(all) == 0 {
		return nil, nil
	}
	if err := markKept(c.root, unit, all); err != nil {
		return nil, err
	}
	return all, c.markOwn(ctx, unit, all)
}

// addRates adds one property's entries.
func addRates(all []PathLimit, k limit.Key, rates []deviceRate) []PathLimit {
	for _, r := range rates {
		rate := limit.Unlimited
		if r.Rate != math.MaxUint64 && r.Rate != 0 { // the kernel refuses 0
			rate = limit.PerSecond(r.Rate)
		}
		i := slices.IndexFunc(all, func(l PathLimit) bool { return l.Path == r.Path })
		if i < 0 {
			i = len(all)
			all = append(all, PathLimit{Path: r.Path, Limit: limit.None})
		}
		all[i].Limit = all[i].Limit.With(k, rate)
	}
	return all
}

// DeviceOf returns the device on which systemd sets a limit that names a path. is is false if it sets
// none, or if that cannot be seen.
func DeviceOf(ctx context.Context, root, path string) (dev blkdev.Number, is bool) {
	return PathLimit{Devices: devicesOf(ctx, blkdev.New(root), path)}.On()
}

// GoesPast reports whether systemd would put a limit of a device on another one: it goes on to the
// disk below a device on a single disk, such as a logical volume or LUKS, and knows no setting
// that stops it. Where the way cannot be seen, the answer is false.
func GoesPast(ctx context.Context, root string, dev blkdev.Number) bool {
	return len(devicesOf(ctx, blkdev.New(root), dev.String())) > 1
}

// Ends returns the devices of which one gets the rule: the last on systemd's way or, of a longer
// way, also the second. Its versions follow one step or all of them (systemd's pull request 40426).
func (l PathLimit) Ends() []blkdev.Number {
	switch n := len(l.Devices); {
	case n > 2:
		return []blkdev.Number{l.Devices[1], l.Devices[n-1]}
	case n > 1:
		return l.Devices[1:]
	}
	return l.Devices
}

// On returns the device whose rule systemd writes, if that is known.
func (l PathLimit) On() (dev blkdev.Number, known bool) {
	if ends := l.Ends(); len(ends) == 1 {
		return ends[0], true
	}
	return dev, false
}

// devicesOf returns the devices on systemd's way from a path to the device whose rule it
// writes, that device last (src/core/cgroup.c, lookup_block_device): the disk of a node, or of
// the file system of any other path, and on through devices on a single disk, such as LUKS and
// most of LVM. It is empty if systemd ignores the path, or the way cannot be seen.
func devicesOf(ctx context.Context, fs blkdev.FS, path string) []blkdev.Number {
	if n, err := blkdev.ParseNumber(strings.TrimPrefix(path, nodesByNumber)); err == nil {
		path = n.String() // systemd needs no node for it either
	}
	chain, err := fs.Resolve(ctx, path)
	if err != nil || len(chain.Devices) != 1 {
		return nil
	}
	if slices.ContainsFunc(chain.Layers, func(l blkdev.Layer) bool { return l.Kind == blkdev.StackLayer }) {
		return nil
	}
	d := chain.Devices[0]
	numbers := []blkdev.Number{d.Number}
	for d.Kind != blkdev.Loop && onOneDisk(d.Beneath) {
		below := d.Beneath[0]
		d = below.Whole()
		numbers = append(numbers, d.Number)
		if below.Kind == blkdev.Partition {
			break
		}
	}
	return numbers
}

func onOneDisk(devs []blkdev.Device) bool {
	return len(devs) > 0 && !slices.ContainsFunc(devs, func(d blkdev.Device) bool { return d.Whole().Number != devs[0].Whole().Number })
}

// ObjectOf returns a unit's D-Bus object (sd_bus_path_encode(3)).
func ObjectOf(unit string) dbus.ObjectPath {
	var b strings.Builder
	b.WriteString(string(manager) + "/unit/")
	for i, c := range []byte(unit) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if letter || i > 0 && '0' <= c && c <= '9' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "_%02x", c)
		}
	}
	return dbus.ObjectPath(b.String())
}

// interfaceOf returns the interface that has a unit's limits: that of its type.
func interfaceOf(unit string) string {
	kind := strings.TrimPrefix(path.Ext(unit), ".")
	if kind == "" {
		return unitIf
	}
	return busName + "." + strings.ToUpper(kind[:1]) + kind[1:]
}
