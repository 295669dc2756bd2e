package cgconfig

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// A GroupLimit is what the file gives one group on one device.
type GroupLimit struct {
	File   string // that it stands in
	Group  string // its path, "/web/static"
	Line   int    // of the group's section
	Device blkdev.Number
	Limit  limit.Limit
}

// A Note says what of the file is no disk I/O limit, or cannot be taken for one.
type Note struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// throttled is the rate of one of cgroup v1's files.
func throttled(file string) (k limit.Key, ok bool) {
	switch file {
	case "blkio.throttle.read_bps_device":
		return limit.RBPS, true
	case "blkio.throttle.write_bps_device":
		return limit.WBPS, true
	case "blkio.throttle.read_iops_device":
		return limit.RIOPS, true
	case "blkio.throttle.write_iops_device":
		return limit.WIOPS, true
	}
	return k, false
}

// A File is a parsed file.
type File struct {
	Name     string
	Sections []Section
}

// reader collects limits and notes.
type reader struct {
	file   string
	below  string            // the group that all others are below, for systemd's sake
	spaces map[string]string // the groups that those of a controller are below, by the controller
	limits []GroupLimit
	at     map[place]int // of limits, by their index
	notes  []Note
}

// A place is what a limit applies to.
type place struct {
	group  string
	device blkdev.Number
}

// Limits returns the limits of all groups, in the files' order, and what else is in them.
func Limits(files ...File) ([]GroupLimit, []Note) {
	r := reader{at: map[place]int{}}
	for _, f := range files {
		r.file, r.spaces = f.Name, map[string]string{}
		for _, s := range f.Sections { // they move groups of the whole file, wherever they stand
			switch s.Word {
			case "systemd":
				r.systemd(s)
			case "namespace":
				r.namespace(s)
			}
		}
		for _, s := range f.Sections {
			switch s.Word {
			case "group":
				r.group(s)
			case "systemd", "namespace":
			case "mount":
				r.note(s.Line, "mount: left out: weir uses the hierarchies that are mounted")
			case "template":
				r.note(s.Line, "template %s: left out: its groups exist only once processes of its users start", s.Name)
			case "default":
				r.note(s.Line, "default: left out: it is about libcgroup itself")
			default: // such as "Group", or the mark of an editor before the first word
				r.note(s.Line, "%s: left out: libcgroup has no such section; write group, mount, systemd, namespace, template or default", plain.Short(s.Word, 60))
			}
		}
	}
	return r.limits, r.notes
}

// systemd reads a section that makes systemd create a scope in a slice for libcgroup. With
// setdefault all groups are below that scope, also those of later files.
func (r *reader) systemd(s Section) {
	has := map[string]string{}
	for _, set := range s.Settings {
		has[set.Name] = set.Value
	}
	slice, scope := has["slice"], has["scope"]
	switch {
	case !strings.EqualFold(has["setdefault"], "yes"):
		r.note(s.Line, "systemd: left out: weir import makes no scope")
	case !isGroupName(slice) || !isGroupName(scope) || strings.Contains(slice+scope, "/"):
		r.note(s.Line, "systemd: left out: these are no valid names for a slice and a scope: %q and %q", slice, scope)
	default:
		r.below = "/" + slice + "/" + scope
		r.note(s.Line, "systemd: all groups are below %s; weir does not make that scope", r.below)
	}
}

// namespace reads a section that names a group for each controller, which all groups of the
// file are below in its hierarchy.
func (r *reader) namespace(s Section) {
	for _, set := range s.Settings {
		if !isGroupName(set.Value) {
			r.note(set.Line, "namespace %s: left out: %q is no valid group name", set.Name, set.Value)
			continue
		}
		r.spaces[set.Name] = "/" + set.Value
	}
}

func isGroupName(name string) bool {
	return name != "" && !slices.Contains(strings.Split(name, "/"), "..") && !strings.ContainsFunc(name, unicode.IsControl)
}

func (r *reader) note(line int, format string, args ...any) {
	r.notes = append(r.notes, Note{r.file, line, plain.Line(fmt.Sprintf(format, args...))})
}

func (r *reader) group(s Section) {
	if !isGroupName(s.Name) {
		r.note(s.Line, "group %q: left out: this is no valid group name", s.Name)
		return
	}
	for _, set := range s.Settings {
		r.note(set.Line, "group %s: %s: left out: it is not in the section of a controller", s.Name, set.Name)
	}
	for _, c := range s.Sections {
		switch c.Word {
		case "perm":
			r.note(c.Line, "group %s: perm: left out: weir sets no permissions", s.Name)
		case "blkio", "io":
			group := path.Clean(r.below + r.spaces[c.Word] + "/" + s.Name) // libcgroup's "." is the root
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
	if key, ok := throttled(set.Name); ok {
		read = func(line string) (blkdev.Number, limit.Limit, error) { return readThrottle(key, line) }
	} else if set.Name != "io.max" {
		r.note(set.Line, "group %s: %s: left out: of disk I/O, weir sets only limits", s.Name, set.Name)
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
		r.add(GroupLimit{r.file, group, s.Line, dev, l})
	}
}

// add joins what one group has on one device: the kernel is given all of it, the last
// one counts.
func (r *reader) add(l GroupLimit) {
	i, known := r.at[place{l.Group, l.Device}]
	if !known {
		r.at[place{l.Group, l.Device}] = len(r.limits)
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

// readRate reads a rate as the kernel does; a rate that is too large for a rule is an error.
func readRate(key limit.Key, text string) (limit.Rate, error) {
	rate, err := limit.ParseKernel(text)
	n, bound := rate.Number()
	top := uint64(limit.MaxBytesPerSec)
	if key.IsOps() {
		top = limit.MaxOpsPerSec
	}
	if err == nil && bound && n > top {
		err = fmt.Errorf("%s is more than the kernel can store", text)
	}
	return rate, err
}
