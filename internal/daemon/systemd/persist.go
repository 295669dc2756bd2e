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

	"github.com/weir-io/weir/internal/limit"
)

// Where systemd stores the settings of SetUnitProperties, until the next boot and beyond
// (systemd.unit(5), "Unit File Load Path"). When units are read again, a file in the second
// hides one of the same name in the first.
const (
	runtimeControl    = "/run/systemd/system.control"
	persistentControl = "/etc/systemd/system.control"
)

// A DropIn is a file in which systemd stores one of the four rates of a unit, for all devices
// together.
type DropIn struct {
	Key  limit.Key
	Path string
}

// Kept lists the drop-ins in which systemd stores rates of a unit over boots.
func Kept(root, unit string) ([]DropIn, error) { return dropIns(root, persistentControl, unit) }

// Kept names the rates of a unit that systemd keeps over boots.
func (c *Conn) Kept(unit string) ([]limit.Key, error) {
	all, err := Kept(c.root, unit)
	var keys []limit.Key
	for _, d := range all {
		keys = append(keys, d.Key)
	}
	return keys, err
}

// Forget removes the drop-ins that keep rates of a unit over boots, and makes systemd read its
// units again.
func (c *Conn) Forget(ctx context.Context, unit string, keys []limit.Key) error {
	all, err := Kept(c.root, unit)
	if err != nil {
		return err
	}
	return c.remove(ctx, slices.DeleteFunc(all, func(d DropIn) bool { return !slices.Contains(keys, d.Key) }))
}

// remove removes drop-ins, and makes systemd read its units again if there are any.
func (c *Conn) remove(ctx context.Context, all []DropIn) error {
	for _, d := range all {
		if err := d.remove(); err != nil {
			return err
		}
	}
	if len(all) == 0 {
		return nil
	}
	return c.Reload(ctx)
}

// dropIns lists the existing ones. systemd names them after the property.
func dropIns(root, control, unit string) ([]DropIn, error) {
	if full, err := FullName(unit); err != nil || full != unit {
		return nil, errors.Join(fmt.Errorf("look for drop-ins of unit %q: it is no full name", unit), err)
	}
	var found []DropIn
	for _, k := range limit.Keys {
		path := filepath.Join(root, control, unit+".d", "50-"+propertyNames[k]+".conf")
		_, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for drop-ins: %w", err)
		}
		found = append(found, DropIn{k, path})
	}
	return found, nil
}

// DropIns lists the drop-ins in which systemd itself stores rates of a unit, over boots or
// until the next boot.
func DropIns(root, unit string) ([]DropIn, error) {
	kept, err := dropIns(root, persistentControl, unit)
	if err != nil {
		return nil, err
	}
	until, err := dropIns(root, runtimeControl, unit)
	return append(kept, until...), err
}

// KeptIn lists the drop-ins in which systemd keeps rates of a unit over its restarts, also one
// that a program made.
func KeptIn(root, unit string) (files []string, err error) {
	for _, record := range records {
		all, err := dropIns(root, record, unit)
		if err != nil {
			return nil, err
		}
		for _, d := range all {
			files = append(files, d.Path)
		}
	}
	return files, nil
}

// Lift removes all limits of a unit, both those kept over boots and those until the next boot.
func (c *Conn) Lift(ctx context.Context, unit string) error {
	has, err := c.IOLimits(ctx, unit)
	if err != nil {
		return err
	}
	var settings []Setting
	for _, l := range has {
		settings = append(settings, IOLimitAt(l.Path, limit.None)...)
	}
	for _, persist := range []bool{true, false} {
		if len(settings) == 0 {
			break
		}
		if err := c.Set(ctx, unit, persist, settings); err != nil {
			return err
		}
	}
	return c.Tidy(ctx, unit)
}

// Tidy removes the drop-ins that no longer set any of a unit's rates, which a removed limit
// leaves behind. Drop-ins that the next boot forgets anyway stay if another file of the unit
// sets the rate, which they override. If any was removed, systemd reads its units again.
func (c *Conn) Tidy(ctx context.Context, unit string) error {
	var sources []string
	if err := c.sources(ctx, unit, &sources); err != nil {
		return err
	}
	var unused []DropIn
	for _, control := range []string{persistentControl, runtimeControl} {
		all, err := dropIns(c.root, control, unit)
		if err != nil {
			return err
		}
		for _, d := range all {
			others := slices.DeleteFunc(slices.Clone(sources), func(s string) bool { return s == d.Path })
			if control == persistentControl {
				others = nil
			}
			idle, err := d.idle(others)
			if err != nil {
				return err
			}
			if idle {
				unused = append(unused, d)
			}
		}
	}
	return c.remove(ctx, unused)
}

// remove removes the drop-in, and its directory if that is empty then.
func (d DropIn) remove() error {
	if err := os.Remove(d.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove drop-in: %w", err)
	}
	_ = os.Remove(filepath.Dir(d.Path))
	return nil
}

// idle reports whether neither the drop-in nor others set its rate.
func (d DropIn) idle(others []string) (bool, error) {
	for _, path := range append([]string{d.Path}, others...) {
		sets, err := setsRate(path, d.Key)
		if sets || err != nil {
			return false, err
		}
	}
	return true, nil
}

// setsRate reports whether a unit's file gives a rate a value. An empty value takes back what
// earlier files gave.
func setsRate(path string, k limit.Key) (bool, error) {
	text, err := readFile(path)
	return setsIn(text, k), err
}

func setsIn(text string, k limit.Key) bool {
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(line, "=")
		if ok && strings.TrimSpace(name) == propertyNames[k] && strings.TrimSpace(value) != "" {
			return true
		}
	}
	return false
}

// sources lists the files that define a unit.
func (c *Conn) sources(ctx context.Context, unit string, all *[]string) error {
	var fragment string
	if err := c.property(ctx, ObjectOf(unit), unitIf, "FragmentPath", &fragment); err != nil {
		return err
	}
	if err := c.property(ctx, ObjectOf(unit), unitIf, "DropInPaths", all); err != nil {
		return err
	}
	if fragment != "" {
		*all = append(*all, fragment)
	}
	return nil
}

// Reload makes systemd read its units again ("systemctl daemon-reload").
func (c *Conn) Reload(ctx context.Context) error {
	if err := c.call(ctx, manager, managerIf+".Reload").Err; err != nil {
		return fmt.Errorf("reload systemd: %w", explain(err))
	}
	return nil
}

// Enable makes units start at boot, or with false no longer.
func (c *Conn) Enable(ctx context.Context, on bool, units ...string) error {
	const runtime, force = false, false
	method, args := ".DisableUnitFiles", []any{units, runtime}
	if on {
		method, args = ".EnableUnitFiles", append(args, force)
	}
	if call := c.call(ctx, manager, managerIf+method, args...); call.Err != nil {
		return fmt.Errorf("enable %s: %w", strings.Join(units, ", "), explain(call.Err))
	}
	return c.Reload(ctx)
}
