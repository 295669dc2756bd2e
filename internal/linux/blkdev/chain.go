package blkdev

import (
	"fmt"
	"strings"

	"github.com/weir-io/weir/internal/base/plain"
)

// A Chain is the way from what was asked for to the devices that the rule belongs on.
type Chain struct {
	Spec    string   `json:"spec"`
	Layers  []Layer  `json:"layers"`          // from the top down
	Devices []Device `json:"devices"`         // where the rule goes, each once; more than one for btrfs only
	Notes   []string `json:"notes,omitempty"` // what a person should know, a sentence each
}

// A LayerKind says what a layer of a chain is.
type LayerKind string

// The layers of a chain.
const (
	SpecLayer   LayerKind = "spec"       // what was asked for
	MountLayer  LayerKind = "mount"      // the mount a path is on
	StackLayer  LayerKind = "stacked"    // a file system on a directory or file of another: overlay
	FSLayer     LayerKind = "filesystem" // a file system on its devices
	DeviceLayer LayerKind = "device"     // devices that were named, or whole disks of partitions
)

// A Layer is one step of a chain.
type Layer struct {
	Kind    LayerKind `json:"kind"`
	Text    string    `json:"text"`              // as a person reads it
	Mount   *Mount    `json:"mount,omitempty"`   // of a mount layer
	Devices []Device  `json:"devices,omitempty"` // of a filesystem or device layer
}

// String returns the chain in one line:
// "/srv/x → mount /srv → ext4 on /dev/vda2 (partition) → /dev/vda".
func (c Chain) String() string {
	if len(c.Layers) == 0 {
		return plain.Line(c.Spec)
	}
	texts := make([]string, len(c.Layers))
	for i, l := range c.Layers {
		texts[i] = l.Text
	}
	return strings.Join(texts, " → ")
}

// FileSystem returns the mount of the file system that is on the devices: below an
// overlay, that of its upper directory. It is false when a device was named.
func (c Chain) FileSystem() (Mount, bool) {
	for i := len(c.Layers) - 1; i >= 0; i-- {
		if m := c.Layers[i].Mount; m != nil {
			return *m, true
		}
	}
	return Mount{}, false
}

// Devices returns the devices of all chains, each once, in order.
func Devices(chains []Chain) []Device {
	var all []Device
	for _, c := range chains {
		all = append(all, c.Devices...)
	}
	return distinct(all)
}

func distinct(devs []Device) []Device {
	return unseen(make(map[Number]bool, len(devs)), devs)
}

// add puts a layer at the end, its text fit for a terminal.
func (c *Chain) add(l Layer) {
	l.Text = plain.Brief(l.Text)
	c.Layers = append(c.Layers, l)
}

func (c *Chain) note(format string, args ...any) {
	c.Notes = append(c.Notes, plain.Brief(fmt.Sprintf(format, args...)))
}

// end closes the chain with the devices that a file system is on or that were named,
// and takes partitions to their disks. prefix is "ext4 on ", or empty.
func (c *Chain) end(kind LayerKind, prefix string, devs []Device) {
	texts := make([]string, len(devs))
	wholes := make([]Device, len(devs))
	partition := false
	for i, d := range devs {
		texts[i] = d.String()
		wholes[i] = d.Whole()
		if d.Kind == Partition {
			partition = true
			c.note("%s is a partition of %s; the limit is on the whole disk", d.Name, wholes[i].Name)
		}
	}
	c.add(Layer{Kind: kind, Text: prefix + listed(texts), Devices: devs})
	c.Devices = distinct(wholes)
	if !partition {
		return
	}
	texts = texts[:0]
	for _, d := range c.Devices {
		texts = append(texts, d.String())
	}
	c.add(Layer{Kind: DeviceLayer, Text: listed(texts), Devices: c.Devices})
}

// maxListed bounds the devices that one line names.
const maxListed = 6

func listed(texts []string) string {
	if more := len(texts) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:maxListed], ", "), more)
	}
	return strings.Join(texts, ", ")
}

// String returns the node and what the device is: "/dev/vda", "/dev/vda2 (partition)",
// "/dev/mapper/vg0-root (LVM on /dev/sda2 (partition))".
func (d Device) String() string {
	what := ""
	switch {
	case d.Kind == Partition:
		return d.Node + " (partition)"
	case d.Kind == Disk:
		if len(d.Beneath) == 0 {
			return d.Node
		}
		what = "disk"
	case d.Flavor == "lvm":
		what = "LVM"
	case d.Flavor == "partition":
		what = "dm partition"
	case d.Flavor != "" && d.Kind == DM:
		what = d.Flavor
	case d.Flavor != "":
		what = string(d.Kind) + " " + d.Flavor
	default:
		what = string(d.Kind)
	}
	return d.Node + " (" + what + d.standing() + ")"
}

// standing says what a device stands on, with " on " before it.
func (d Device) standing() string {
	var below []string
	for _, b := range d.Beneath {
		below = append(below, b.String())
	}
	if d.Backing == nil {
		if len(below) == 0 {
			return ""
		}
		return " on " + listed(below)
	}
	s := " on " + d.Backing.File
	if d.Backing.Deleted {
		s += deletedMark
	}
	if len(below) > 0 {
		s += " on " + listed(below)
	}
	return s
}
