package blkdev

import (
	"fmt"
	"path/filepath"
	"strings"

	names "github.com/weir-io/weir/internal/base/near"
)

const (
	maxNames = 1 << 16 // block devices of one host, partitions included
	maxHave  = 12      // of which a message lists so many
)

// notFound makes the error for an unknown device, with suggestions.
func (fs FS) notFound(spec string, looked ...string) error {
	e := &NotFoundError{Spec: spec, Reason: "no such block device", Looked: looked}
	names, err := fs.dirNames("/sys/class/block", maxNames)
	if err != nil {
		e.Reason += fmt.Sprintf(" (weir cannot list the devices: %v)", err)
		return e
	}
	wanted := filepath.Base(spec)
	for _, name := range names {
		shown, inUse := fs.shown(name)
		if near(wanted, name) || shown != name && near(wanted, strings.TrimSuffix(shown, " ("+name+")")) {
			e.Near = append(e.Near, shown)
		}
		if inUse {
			e.Have = append(e.Have, shown)
		}
	}
	e.Near = e.Near[:min(len(e.Near), maxHave)]
	e.Have = cut(e.Have)
	return e
}

// notFoundNode is notFound for a node, or for one of udev's links: it suggests names in the
// same directory.
func (fs FS) notFoundNode(spec, p string) error {
	dir := filepath.Dir(p)
	if !within(dir, "/dev/disk") {
		return fs.notFound(spec, dir, "/sys/class/block")
	}
	e := &NotFoundError{Spec: spec, Reason: "no such block device", Looked: []string{dir}}
	links, err := fs.dirNames(dir, maxNames)
	if err != nil {
		e.Reason += fmt.Sprintf(" (%v)", err)
		return e
	}
	for _, name := range links {
		if near(filepath.Base(p), name) && len(e.Near) < maxHave {
			e.Near = append(e.Near, name)
		}
	}
	e.Have = cut(links)
	return e
}

func cut(names []string) []string {
	if more := len(names) - maxHave; more > 0 {
		return append(names[:maxHave:maxHave], fmt.Sprintf("%d more", more))
	}
	return names
}

// shown is a device's name for a list, and whether it is worth listing: an empty
// loop, ram or zram device is not.
func (fs FS) shown(name string) (string, bool) {
	dir, err := fs.sysDir("/sys/class/block/" + name)
	if err != nil {
		return name, false
	}
	size, err := fs.sizeAt(dir)
	inUse := err != nil || size > 0
	if strings.HasPrefix(name, "ram") {
		inUse = false
	}
	if strings.HasPrefix(name, "dm-") {
		if s, err := fs.attr(dir + "/dm/name"); err == nil && s != "" {
			name = s + " (" + name + ")"
		}
	}
	return strings.ReplaceAll(name, "!", "/"), inUse
}

// near reports whether a name is likely to be what was meant: at most one edit in
// four letters away, and never more than two.
func near(wanted, name string) bool {
	wanted, name = strings.ToLower(wanted), strings.ToLower(name)
	if len(wanted) > 64 || len(name) > 64 || wanted == "" {
		return false
	}
	most := min(2, max(1, len(wanted)/4))
	return names.Distance(wanted, name) <= most
}
