package blkdev

import (
	"context"
	"fmt"
	"os"
	"strings"
)

// wholeAt tells dm, md and loop devices from disks, and reads what they stand on.
func (fs FS) wholeAt(ctx context.Context, dir string, d Device, depth int) (Device, error) {
	var err error
	switch {
	case strings.HasPrefix(d.Name, "dm-"):
		err = fs.readDM(dir, &d)
	case strings.HasPrefix(d.Name, "md"):
		err = fs.readMD(dir, &d)
	case strings.HasPrefix(d.Name, "loop"):
		err = fs.readLoop(dir, &d)
	}
	if err != nil {
		return d, fmt.Errorf("read device %s: %w", d.Name, err)
	}
	slaves, err := fs.dirNames(dir+"/slaves", maxMembers)
	if err != nil && !isNotExist(err) {
		return d, fmt.Errorf("read device %s: %w", d.Name, err)
	}
	for _, name := range slaves {
		s, err := fs.deviceNamed(ctx, name, depth-1)
		if err != nil {
			return d, fmt.Errorf("read %s beneath %s: %w", name, d.Name, err)
		}
		d.Beneath = append(d.Beneath, s)
	}
	return d, nil
}

// dirNames lists a directory in order, and refuses one with more than most entries.
func (fs FS) dirNames(dir string, most int) ([]string, error) {
	entries, err := os.ReadDir(fs.at(dir))
	if err != nil {
		return nil, err
	}
	if len(entries) > most {
		return nil, fmt.Errorf("list %s: %w", dir, errManyMembers)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// readDM reads the name under /dev/mapper and, from the prefix of the uuid, which program made
// the device (Documentation/ABI/testing/sysfs-block-dm).
func (fs FS) readDM(dir string, d *Device) error {
	name, err := fs.attr(dir + "/dm/name")
	if err != nil {
		if isNotExist(err) { // not a device of the device mapper after all
			return nil
		}
		return err
	}
	d.Kind = DM
	if name != "" {
		d.Node = "/dev/mapper/" + name
	}
	uuid, err := fs.attr(dir + "/dm/uuid")
	if err != nil && !isNotExist(err) {
		return err
	}
	d.Flavor = dmFlavor(uuid)
	return nil
}

// dmFlavor reads the prefix that LVM, cryptsetup, multipath and kpartx put before a uuid.
func dmFlavor(uuid string) string {
	prefix, _, ok := strings.Cut(uuid, "-")
	switch {
	case !ok:
		return ""
	case prefix == "LVM":
		return "lvm"
	case prefix == "CRYPT":
		return "crypt"
	case prefix == "mpath":
		return "multipath"
	case strings.HasPrefix(prefix, "part"):
		return "partition"
	}
	return ""
}

// readMD reads the RAID level (Documentation/admin-guide/md.rst).
func (fs FS) readMD(dir string, d *Device) error {
	level, err := fs.attr(dir + "/md/level")
	if err != nil {
		if isNotExist(err) {
			return nil
		}
		return err
	}
	d.Kind, d.Flavor = MD, level
	return nil
}
