package cgconfig

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/plain"
)

// A GroupLimit is what the file gives one group on one device.
type GroupLimit struct {
	Group  string // its path, "/web/static"
	Line   int    // of the group's section
	Device blkdev.Number
	Limit  limit.Limit
}

// A Note says what of the file is no disk I/O limit, or cannot be taken for one.
type Note struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// throttles are cgroup v1's names of the rates.
var throttles = map[string]limit.Key{
	"blkio.throttle.read_bps_device":   limit.RBPS,
	"blkio.throttle.write_bps_device":  limit.WBPS,
	"blkio.throttle.read_iops_device":  limit.RIOPS,
	"blkio.throttle.write_iops_device": limit.WIOPS,
}

// reader collects limits and notes.
type reader struct {
	limits []GroupLimit
	notes  []Note
}

// Limits returns the limits of all groups, in the file's order, and what else is in it.
func Limits(file []Section) ([]GroupLimit, []Note) {
	var r reader
	for _, s := range file {
		switch s.Word {
		case "group":
			r.group(s)
		case "mount":
			r.note(s.Line, "mount: left out: weir works in the hierarchies that are mounted")
		case "template":
			r.note(s.Line, "template %s: left out: its groups are made as processes of its users start, and have no limits before", s.Name)
		default:
			r.note(s.Line, "%s: left out: it is about libcgroup itself", s.Word)
		}
	}
	return r.limits, r.notes
}

func (r *reader) note(line int, format string, args ...any) {
	r.notes = append(r.notes, Note{line, plain.Line(fmt.Sprintf(format, args...))})
}

func (r *reader) group(s Section) {
	if s.Name == "" || slices.Contains(strings.Split(s.Name, "/"), "..") || strings.ContainsFunc(s.Name, unicode.IsControl) {
		r.note(s.Line, "group %q: left out: no group can have this name", s.Name)
		return
	}
	group := path.Clean("/" + s.Name) // libcgroup's "." is the root
	for _, set := range s.Settings {
		r.note(set.Line, "group %s: %s: left out: it stands in no controller's section", s.Name, set.Name)
	}
	for _, c := range s.Sections {
		switch c.Word {
		case "perm":
			r.note(c.Line, "group %s: perm: left out: weir sets limits, and no rights", s.Name)
		case "blkio", "io":
			for _, set := range c.Settings {
				r.setting(s, group, set)
			}
		default:
			r.note(c.Line, "group %s: %s: left out: no disk I/O", s.Name, c.Word)
		}
	}
}

func (r *reader) setting(s Section, group string, set Setting) {
	read := readMax
	if key, ok := throttles[set.Name]; ok {
		read = func(line string) (blkdev.Number, limit.Limit, error) { return readThrottle(key, line) }
	} else if set.Name != "io.max" {
		r.note(set.Line, "group %s: %s: left out: weir sets limits, and nothing else of disk I/O", s.Name, set.Name)
		return
	}
	for line := range strings.Lines(set.Value) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		dev, l, err := read(line)
		if err != nil {
			r.note(set.Line, "group %s: %s: left out: %v", s.Name, set.Name, err)
			continue
		}
		r.add(GroupLimit{group, s.Line, dev, l})
	}
}

// add joins what one group has on one device: the kernel is given all of it, the last
// one counts.
func (r *reader) add(l GroupLimit) {
	i := slices.IndexFunc(r.limits, func(other GroupLimit) bool { return other.Group == l.Group && other.Device == l.Device })
	if i < 0 {
		r.limits = append(r.limits, l)
		return
	}
	r.limits[i].Limit = r.limits[i].Limit.Overlay(l.Limit)
}

// readThrottle reads a line of a v1 file, "8:0 1048576"; 0 lifts a limit.
func readThrottle(key limit.Key, line string) (blkdev.Number, limit.Limit, error) {
	fields := strings.Fields(line)
	if len(fields) != 2 {
		return blkdev.Number{}, limit.Limit{}, fmt.Errorf("%q is not MAJOR:MINOR and a rate", strings.TrimSpace(line))
	}
	dev, err := blkdev.ParseNumber(fields[0])
	if err != nil {
		return dev, limit.Limit{}, err
	}
	rate := limit.Unlimited
	if strings.Trim(fields[1], "0") != "" {
		if rate, err = readRate(key, fields[1]); err != nil {
			return dev, limit.Limit{}, err
		}
	}
	return dev, limit.Limit{}.With(key, rate), nil
}

// readMax reads a line of io.max, "8:16 rbps=2097152 wiops=max".
func readMax(line string) (blkdev.Number, limit.Limit, error) {
	fields := strings.Fields(line)
	dev, err := blkdev.ParseNumber(fields[0])
	if err != nil {
		return dev, limit.Limit{}, err
	}
	var l limit.Limit
	for _, field := range fields[1:] {
		name, value, _ := strings.Cut(field, "=")
		key, known := limit.KeyNamed(name)
		if !known {
			return dev, limit.Limit{}, fmt.Errorf("%q is none of rbps=, wbps=, riops= and wiops=", field)
		}
		rate, err := readRate(key, value)
		if err != nil {
			return dev, limit.Limit{}, err
		}
		l = l.With(key, rate)
	}
	if l.IsZero() {
		return dev, l, fmt.Errorf("%q names no rate", strings.TrimSpace(line))
	}
	return dev, l, nil
}

// readRate reads a rate as the kernel does; one that is more than a rule can carry is
// refused.
func readRate(key limit.Key, text string) (limit.Rate, error) {
	rate, err := limit.ParseKernel(text)
	n, bound := rate.Number()
	top := uint64(limit.MaxBytesPerSec)
	if key.IsOps() {
		top = limit.MaxOpsPerSec
	}
	if err == nil && bound && n > top {
		err = fmt.Errorf("%s is more than the kernel can hold", text)
	}
	return rate, err
}
