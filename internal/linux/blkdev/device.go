package blkdev

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Kind says what sort of block device a device is, as far as rules care.
type Kind string

// The kinds of devices. All but partitions take rules themselves.
const (
	Disk      Kind = "disk"
	Partition Kind = "partition"
	DM        Kind = "dm"
	MD        Kind = "md"
	Loop      Kind = "loop"
)

// A Device is one block device, as sysfs describes it.
type Device struct {
	Number Number `json:"number"`
	Name   string `json:"name"` // sysfs's name: "vda", "dm-0", "cciss!c0d0"
	Node   string `json:"node"` // "/dev/vda", "/dev/mapper/vg0-root"
	Kind   Kind   `json:"kind"`
	// Flavor narrows Kind: "lvm", "crypt", "multipath", "partition" for dm (the
	// prefix of dm/uuid), "raid1" and its like for md (md/level).
	Flavor string `json:"flavor,omitempty"`
	// SizeBytes is sysfs's size, which counts sectors of 512 bytes, in bytes.
	SizeBytes int64 `json:"size_bytes"`
	// Backing is what a loop device stands on; nil for others and for one not in use.
	Backing *Backing `json:"backing,omitempty"`
	// Beneath is what the device stands on directly: a partition's disk, the slaves
	// of a dm or md device, the device below a loop device's file.
	Beneath []Device `json:"beneath,omitempty"`
}

// A Backing is the file of a loop device (loop/backing_file, loop/dio).
type Backing struct {
	File    string `json:"file"`
	Deleted bool   `json:"deleted,omitempty"` // unlinked while in use
	// DirectIO reports direct I/O on the file: with it the submitter's cgroup is
	// charged below, too. Kernels before 4.10 do not say, and read as false.
	DirectIO bool `json:"direct_io"`
}

// Whole returns the device that takes the rules for d: the disk of a partition, and
// d itself otherwise.
func (d Device) Whole() Device {
	if d.Kind == Partition && len(d.Beneath) == 1 {
		return d.Beneath[0]
	}
	return d
}

// StandsOn reports whether the device is the other one, or has it somewhere below.
func (d Device) StandsOn(n Number) bool {
	return d.Number == n || slices.ContainsFunc(d.Beneath, func(b Device) bool { return b.StandsOn(n) })
}

// Bounds on a stack of devices; a real one has a handful of levels.
const (
	maxDepth   = 16
	maxMembers = 1024
)

// Device reads what sysfs has about device n, and all that is beneath it except for
// the device below a loop device's file, which takes the mounts to find (Resolve
// does). It returns a *NotFoundError for a number that no device has.
func (fs FS) Device(ctx context.Context, n Number) (Device, error) {
	link := "/sys/dev/block/" + n.String()
	dir, err := fs.sysDir(link)
	if err != nil {
		if _, errSys := os.Stat(fs.at("/sys/dev/block")); errSys != nil {
			return Device{}, fmt.Errorf("read device %s: %w (is sysfs mounted there?)", n, errSys)
		}
		if isNotExist(err) {
			return Device{}, fs.notFound(n.String(), "/sys/dev/block")
		}
		return Device{}, fmt.Errorf("read device %s: %w", n, err)
	}
	return fs.linked(ctx, link, dir, maxDepth)
}

// Exists reports whether there is a device of a number.
func (fs FS) Exists(n Number) bool {
	_, err := os.Stat(fs.at("/sys/dev/block/" + n.String()))
	return err == nil
}

// deviceNamed reads the device that sysfs calls name.
func (fs FS) deviceNamed(ctx context.Context, name string, depth int) (Device, error) {
	link := "/sys/class/block/" + name
	dir, err := fs.sysDir(link)
	if err != nil {
		return Device{}, err
	}
	return fs.linked(ctx, link, dir, depth)
}

// linked reads the device at dir, to which link leads, and tells a device that goes
// away meanwhile (link is gone as well) from a sysfs that lacks an entry.
func (fs FS) linked(ctx context.Context, link, dir string, depth int) (Device, error) {
	d, err := fs.deviceAt(ctx, dir, depth)
	if err == nil || !isNotExist(err) {
		return d, err
	}
	name := filepath.Base(link)
	if _, errAgain := fs.sysDir(link); errAgain == nil && fs.exists(dir) {
		// Not %w: this is no "not found", the device is there.
		return Device{}, fmt.Errorf("read device %s: sysfs lacks an entry: %v", name, err)
	}
	return Device{}, &NotFoundError{Spec: name, Reason: fmt.Sprintf("went away while it was read (%v)", err)}
}

func (fs FS) exists(p string) bool {
	_, err := os.Lstat(fs.at(p))
	return err == nil
}

// sysDir follows one of sysfs's links to a device's directory, inside the root.
func (fs FS) sysDir(link string) (string, error) {
	target, err := os.Readlink(fs.at(link))
	if err != nil {
		// A copied tree can have the directory itself here.
		if fi, errStat := os.Lstat(fs.at(link)); errStat == nil && fi.IsDir() {
			return link, nil
		}
		return "", err
	}
	if filepath.IsAbs(target) {
		return filepath.Clean(target), nil
	}
	return filepath.Join(filepath.Dir(link), target), nil
}

func (fs FS) deviceAt(ctx context.Context, dir string, depth int) (Device, error) {
	if err := ctx.Err(); err != nil {
		return Device{}, err
	}
	d := Device{Name: filepath.Base(dir), Kind: Disk}
	if depth == 0 {
		return d, fmt.Errorf("read device %s: more than %d devices on top of each other", d.Name, maxDepth)
	}
	var err error
	if d.Number, err = fs.numberAt(dir); err != nil {
		return d, err
	}
	if strings.Contains(filepath.Base(dir), ":") { // reached through a copied /sys/dev/block
		d.Name = fs.ueventName(dir, d.Name)
	}
	d.Node = "/dev/" + strings.ReplaceAll(d.Name, "!", "/")
	if d.SizeBytes, err = fs.sizeAt(dir); err != nil {
		return d, err
	}
	if _, err := os.Lstat(fs.at(dir + "/partition")); err == nil {
		return fs.partitionAt(ctx, dir, d, depth)
	} else if !isNotExist(err) {
		return d, fmt.Errorf("read device %s: %w", d.Name, err)
	}
	return fs.wholeAt(ctx, dir, d, depth)
}

// numberAt reads a device's `dev`.
func (fs FS) numberAt(dir string) (Number, error) {
	s, err := fs.attr(dir + "/dev")
	if err != nil {
		return Number{}, err
	}
	n, err := ParseNumber(s)
	if err != nil {
		return n, fmt.Errorf("read %s/dev: %w", dir, err)
	}
	return n, nil
}

// sectorBytes is the unit of sysfs's size and of /proc/partitions, whatever the
// device's own sector is.
const sectorBytes = 512

func (fs FS) sizeAt(dir string) (int64, error) {
	s, err := fs.attr(dir + "/size")
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n > (1<<63-1)/sectorBytes {
		return 0, fmt.Errorf("read %s/size: %q is not a number of sectors", dir, s)
	}
	return int64(n) * sectorBytes, nil
}

// ueventName reads DEVNAME from a device's uevent.
func (fs FS) ueventName(dir, otherwise string) string {
	s, err := fs.attr(dir + "/uevent")
	if err != nil {
		return otherwise
	}
	for line := range strings.Lines(s) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); ok {
			return strings.ReplaceAll(v, "/", "!")
		}
	}
	return otherwise
}

// partitionAt adds the disk of a partition, whose directory holds the partition's.
func (fs FS) partitionAt(ctx context.Context, dir string, d Device, depth int) (Device, error) {
	d.Kind = Partition
	disk, err := fs.deviceAt(ctx, filepath.Dir(dir), depth-1)
	if err != nil {
		return d, fmt.Errorf("read disk of partition %s: %w", d.Name, err)
	}
	if disk.Kind == Partition {
		return d, fmt.Errorf("read disk of partition %s: %s is a partition as well", d.Name, disk.Name)
	}
	d.Beneath = []Device{disk}
	return d, nil
}

var errManyMembers = errors.New("more than " + strconv.Itoa(maxMembers) + " members")
