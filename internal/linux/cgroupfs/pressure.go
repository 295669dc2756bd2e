package cgroupfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Pressure is for how long tasks waited for I/O, added up since the group was made, child groups
// included (io.pressure; Documentation/accounting/psi.rst, "total", which counts microseconds).
type Pressure struct {
	Some time.Duration // at least one task waited
	Full time.Duration // all tasks that were not idle waited
}

// Pressure reads the group's io.pressure. There is false if there is none: on v1, before
// Linux 4.20, and where it is switched off (CONFIG_PSI, psi=0, cgroup.pressure).
func (g Group) Pressure() (p Pressure, there bool, err error) {
	if g.h.Version != V2 {
		return p, false, nil
	}
	text, err := g.read("io.pressure")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP) {
		return p, false, nil
	}
	if err != nil {
		return p, false, err
	}
	p, err = ParsePressure(text)
	if err != nil {
		return p, false, fmt.Errorf("parse %s: %w", g.File("io.pressure"), err)
	}
	return p, true, nil
}

// ParsePressure reads the text of io.pressure, or of /proc/pressure/io:
// "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" and such a line for "full".
func ParsePressure(text string) (p Pressure, err error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		var into *time.Duration
		switch fields[0] {
		case "some":
			into = &p.Some
		case "full":
			into = &p.Full
		default:
			continue
		}
		for _, field := range fields[1:] {
			value, is := strings.CutPrefix(field, "total=")
			if !is {
				continue
			}
			us, err := strconv.ParseUint(value, 10, 53)
			if err != nil {
				return p, fmt.Errorf("%q: not a count of microseconds", field)
			}
			*into = time.Duration(us) * time.Microsecond
		}
	}
	return p, nil
}
