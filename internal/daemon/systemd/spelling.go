package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/base/durable"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// transientDir has the files of units that a program made (systemd-run), with their later
// settings.
const transientDir = "/run/systemd/transient"

// records are the directories in which systemd stores what it was told about a unit.
var records = []string{persistentControl, runtimeControl, transientDir}

// Lasts reports whether a path names the same device after the next boot. The kernel assigns
// numbers, and names such as /dev/sda, in the order in which it finds disks.
func Lasts(path string) bool {
	if _, err := blkdev.ParseNumber(path); err == nil || strings.HasPrefix(path, nodesByNumber) || !isPlain(path) {
		return false
	}
	return filepath.Dir(filepath.Clean(path)) != "/dev"
}

// byID has udev's links to disks by their serial numbers and similar, and to device mapper
// devices by their identity.
const byID = "/dev/disk/by-id"

// LastingPath finds a path that systemd resolves to a device, also after the next boot: udev's
// link by the disk's identity, or the mount point of a file system on the disk. The name of a
// device that stands on it comes last. A device that systemd goes past has no such path.
func LastingPath(ctx context.Context, root string, dev blkdev.Number) (string, error) {
	devices := blkdev.New(root)
	past := "" // the first name of another device from which systemd goes on to this one
	leads := func(path string) bool {
		if !isPlain(path) {
			return false
		}
		on := devicesOf(ctx, devices, path)
		if len(on) == 2 && on[1] == dev && past == "" {
			past = path
		}
		return len(on) == 1 && on[0] == dev
	}
	links, err := os.ReadDir(filepath.Join(root, byID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("look for a lasting name of device %s: %w", dev, err)
	}
	for _, l := range links { // sorted by name
		if path := filepath.Join(byID, l.Name()); leads(path) {
			return path, nil
		}
	}
	mounts, err := devices.Mounts(0)
	if err != nil {
		return "", fmt.Errorf("look for a lasting name of device %s: %w", dev, err)
	}
	slices.SortStableFunc(mounts, func(x, y blkdev.Mount) int { return len(x.Point) - len(y.Point) })
	for _, m := range mounts {
		if strings.HasPrefix(m.Source, "/dev/") && leads(m.Point) {
			return m.Point, nil
		}
	}
	if past != "" {
		return past, nil
	}
	return "", &NoLastingPathError{dev}
}

// A NoLastingPathError says that a device has no name that survives a boot.
type NoLastingPathError struct{ Device blkdev.Number }

func (e *NoLastingPathError) Error() string {
	return fmt.Sprintf("device %s has no name that survives a boot: %s has no link to it, and no file system of it is mounted", e.Device, byID)
}

// Lasting is LastingPath on this host.
func (c *Conn) Lasting(ctx context.Context, dev blkdev.Number) (string, error) {
	return LastingPath(ctx, c.root, dev)
}

// Respell makes systemd forget the given names of devices in what it was told about a unit. The
// unit's own files stay. systemd reads its units again if there was anything to forget.
func (c *Conn) Respell(ctx context.Context, unit string, paths []string) error {
	changed := false
	for _, dir := range records {
		all, err := dropIns(c.root, dir, unit)
		if err != nil {
			return err
		}
		for _, d := range all {
			one, err := d.forget(paths)
			if err != nil {
				return err
			}
			changed = changed || one
		}
	}
	if !changed {
		return nil
	}
	return c.Reload(ctx)
}

// forget removes the lines of some paths from a drop-in.
func (d DropIn) forget(paths []string) (changed bool, err error) {
	text, err := readFile(d.Path)
	if err != nil {
		return false, err
	}
	left, changed := without(text, d.Key, paths)
	if !changed {
		return false, nil
	}
	if err := durable.Replace(d.Path, fmt.Sprintf("%s.%d.new", d.Path, os.Getpid()), left, 0o644); err != nil {
		return false, fmt.Errorf("change drop-in: %w", err)
	}
	return true, nil
}

// without is a unit's file without the lines that give some paths a rate.
func without(text string, k limit.Key, paths []string) (left string, changed bool) {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if slices.ContainsFunc(paths, func(path string) bool { return gives(line, k, path) }) {
			changed = true
			continue
		}
		b.WriteString(line)
	}
	return b.String(), changed
}

// gives reports whether a line of what systemd was told gives a path a rate, or takes it away. systemd writes
// a path as it is, and reads it as a word.
func gives(line string, k limit.Key, path string) bool {
	property, value, _ := strings.Cut(line, "=")
	value = strings.TrimSpace(value)
	return strings.TrimSpace(property) == propertyNames[k] && (strings.HasPrefix(value, path+" ") || firstWord(value) == path)
}

// markKept marks the names of which systemd keeps a rate over boots.
func markKept(root, unit string, all []PathLimit) error {
	kept, err := Kept(root, unit)
	if err != nil {
		return err
	}
	for _, d := range kept {
		text, err := readFile(d.Path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			if strings.HasSuffix(strings.TrimSpace(line), " infinity") {
				continue
			}
			for i := range all {
				all[i].Kept = all[i].Kept || gives(line, d.Key, all[i].Path)
			}
		}
	}
	return nil
}

// ratePath returns the property and the path of a line such as "IOReadBandwidthMax=/data 5M".
func ratePath(line string) (property, path string) {
	property, value, ok := strings.Cut(line, "=")
	if !ok {
		return "", ""
	}
	return strings.TrimSpace(property), firstWord(value)
}

// markOwn marks the names in a unit's own files, which systemd always keeps.
func (c *Conn) markOwn(ctx context.Context, unit string, all []PathLimit) error {
	var files []string
	if err := c.sources(ctx, unit, &files); err != nil {
		return err
	}
	for _, file := range files {
		if slices.ContainsFunc(records, func(dir string) bool { return strings.HasPrefix(file, dir+"/"+unit+".d/50-IO") }) {
			continue
		}
		text, err := readFile(file)
		if err != nil {
			return err
		}
		markOwn(text, all)
	}
	return nil
}

func markOwn(text string, all []PathLimit) {
	for _, line := range linesOf(text) {
		property, path := ratePath(line)
		if path == "" || !slices.Contains(propertyNames[:], property) {
			continue
		}
		for i := range all {
			// A specifier (%) can stand for any of them.
			if all[i].Path == path || filepath.Clean(path) == all[i].Path || strings.Contains(path, "%") {
				all[i].Own = true
			}
		}
	}
}

// Together returns the rates of all settings for a device; where they differ, the lower rate.
func Together(all []PathLimit, dev blkdev.Number) limit.Limit {
	together := limit.None
	for _, l := range all {
		if on, known := l.On(); !known || on != dev {
			continue
		}
		for _, k := range limit.Keys {
			rate, bound := l.Limit.Get(k).Number()
			if least, has := together.Get(k).Number(); bound && (!has || rate < least) {
				together = together.With(k, l.Limit.Get(k))
			}
		}
	}
	return together
}
