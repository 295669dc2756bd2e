package systemd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// suffixes of units that have a cgroup.
var suffixes = []string{".service", ".scope", ".slice", ".socket", ".mount", ".swap"}

// UnitOfPath returns the name of the unit that a cgroup path ends in, if it is a unit of this
// systemd: "/system.slice/x.service" belongs to x.service. All elements above must be slices:
// below a service or a scope another manager (of a user, of a container) has units of the same
// names, and groups that a unit with Delegate= makes do not belong to systemd.
func UnitOfPath(cgroup string) (unit string, ok bool) {
	for _, above := range strings.Split(strings.Trim(path.Dir(cgroup), "/"), "/") {
		if above != "" && !strings.HasSuffix(above, ".slice") {
			return "", false
		}
	}
	name := strings.TrimPrefix(path.Base(cgroup), "_") // systemd.io, CGROUP_DELEGATION: names that look like files get a "_"
	for _, s := range suffixes {
		if strings.HasSuffix(name, s) && len(name) > len(s) {
			return name, true
		}
	}
	return "", false
}

// IsBelowUnit reports whether a cgroup belongs to a unit, or is below one: then the first
// element of its path is a unit. The root group belongs to the root slice.
func IsBelowUnit(cgroup string) bool {
	first, _, _ := strings.Cut(strings.Trim(cgroup, "/"), "/")
	_, is := UnitOfPath("/" + first)
	return first == "" || is
}

// IsBesideUnits reports whether a cgroup is directly in one of this systemd's slices but not a
// unit. Deeper groups are safe: the group above has enabled its controllers for them, and the
// kernel lets nobody disable those (cgroup_subtree_control_write: EBUSY).
func IsBesideUnits(cgroup string) bool {
	_, is := UnitOfPath(cgroup)
	return !is && strings.Trim(cgroup, "/") != "" && path.Dir(cgroup) == SlicePath(cmp.Or(SliceOf(cgroup), RootSlice))
}

// Loosens returns the slice whose units can make systemd end the limits of a group that others
// have made; see Anchor. "": none.
func Loosens(v1 bool, cgroup string) string {
	switch {
	case v1 && !IsBelowUnit(cgroup):
		return SystemSlice
	case !v1 && IsBesideUnits(cgroup):
		return cmp.Or(SliceOf(cgroup), RootSlice)
	}
	return ""
}

// SliceOf returns the innermost slice of this systemd that contains a cgroup path, or "".
// Slices below a service belong to another manager.
func SliceOf(cgroup string) string {
	slice := ""
	for _, element := range strings.Split(strings.Trim(cgroup, "/"), "/") {
		if !strings.HasSuffix(element, ".slice") {
			break
		}
		slice = element
	}
	return slice
}

// SlicePath returns the cgroup of a slice, whose name contains those above it:
// "/a.slice/a-b.slice" for "a-b.slice".
func SlicePath(slice string) string {
	if slice == RootSlice {
		return "/"
	}
	path, above := "", ""
	for _, element := range strings.Split(strings.TrimSuffix(slice, ".slice"), "-") {
		above += element
		path += "/" + above + ".slice"
		above += "-"
	}
	return path
}

// propertyNames are systemd.resource-control(5)'s names of the four rates.
var propertyNames = [...]string{
	limit.RBPS:  "IOReadBandwidthMax",
	limit.WBPS:  "IOWriteBandwidthMax",
	limit.RIOPS: "IOReadIOPSMax",
	limit.WIOPS: "IOWriteIOPSMax",
}

// A Setting is a property of a unit, as in SetUnitProperties.
type Setting struct {
	Name  string
	Value dbus.Variant
}

type deviceRate struct {
	Path string
	Rate uint64
}

// IOLimit returns the settings that give a unit the rates of l on a device that none of its
// settings names yet.
func IOLimit(dev blkdev.Number, l limit.Limit) []Setting { return IOLimitAt(NodeOf(dev), l) }

// IOLimitAt is IOLimit for a path. systemd keeps the unit's other paths and rates. All ones
// mean no limit (CGROUP_LIMIT_MAX).
func IOLimitAt(path string, l limit.Limit) []Setting {
	var settings []Setting
	for _, k := range limit.Keys {
		r := l.Get(k)
		if !r.IsSet() {
			continue
		}
		n, ok := r.Number()
		if !ok {
			n = math.MaxUint64
		}
		settings = append(settings, Setting{propertyNames[k], dbus.MakeVariant([]deviceRate{{path, n}})})
	}
	return settings
}

const nodesByNumber = "/dev/block/"

// NodeOf returns a device node that systemd can look up, whatever name the device has.
func NodeOf(dev blkdev.Number) string { return nodesByNumber + dev.String() }

// String spells a setting as "systemctl set-property" takes it.
func (s Setting) String() string {
	if rates, ok := s.Value.Value().([]deviceRate); ok && len(rates) == 1 {
		if rates[0].Rate == math.MaxUint64 {
			return fmt.Sprintf("%s=%s infinity", s.Name, rates[0].Path)
		}
		return fmt.Sprintf("%s=%s %d", s.Name, rates[0].Path, rates[0].Rate)
	}
	return s.Name + "=" + fmt.Sprint(s.Value.Value())
}

// Set changes a unit's settings: until the next boot, or over boots if persist is set. systemd
// applies all of them or none, and stores them in its own drop-ins, one file for each property
// with the values of all paths.
func (c *Conn) Set(ctx context.Context, unit string, persist bool, settings []Setting) error {
	if err := check(unit, settings); err != nil {
		return err
	}
	if err := c.call(ctx, manager, managerIf+".SetUnitProperties", unit, !persist, settings).Err; err != nil {
		return fmt.Errorf("set limits of unit %s: %w", unit, explain(err))
	}
	return nil
}

// check refuses settings that would become more than one line in systemd's file: systemd writes
// the text into that file unchanged.
func check(unit string, settings []Setting) error {
	for _, s := range settings {
		var err error
		switch value := s.Value.Value().(type) {
		case string:
			err = plain.Value("the property "+s.Name, value)
		case []deviceRate:
			for _, r := range value {
				err = errors.Join(err, plain.Value("the path of "+s.Name, r.Path))
			}
		}
		if err != nil {
			return fmt.Errorf("set properties of unit %s: %w", plain.Quoted(unit), err)
		}
	}
	return nil
}

// explain says what systemd's refusals mean here: fs.ErrPermission (systemd's own, or
// polkit's), with what to do; fs.ErrNotExist for a unit that is gone.
func explain(err error) error {
	var refused dbus.Error
	if !errors.As(err, &refused) {
		return err
	}
	switch refused.Name {
	case "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired":
		return fmt.Errorf("%w (systemd changes units for root only; run weir as root)", fs.ErrPermission)
	case "org.freedesktop.systemd1.NoSuchUnit":
		return fmt.Errorf("%w (%w)", fs.ErrNotExist, err)
	}
	return err
}
