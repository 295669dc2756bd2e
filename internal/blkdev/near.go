package blkdev

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxNames = 1 << 16 // block devices of one host, partitions included
	maxHave  = 12      // of which a message lists so many
)

// notFound makes the error for a device that nobody knows, with what there is.
func (fs FS) notFound(spec string, looked ...string) error {
	e := &NotFoundError{Spec: spec, Reason: "no such block device", Looked: looked}
	names, err := fs.dirNames("/sys/class/block", maxNames)
	if err != nil {
		e.Reason += fmt.Sprintf(" (what there is, cannot be listed: %v)", err)
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
	if more := len(e.Have) - maxHave; more > 0 {
		e.Have = append(e.Have[:maxHave], fmt.Sprintf("%d more", more))
	}
	return e
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

// gone is the error for a device that was there a moment ago.
func (fs FS) gone(name string, err error) error {
	if !isNotExist(err) {
		return err
	}
	return fs.vanished(name, err)
}

// vanished tells a device that went away between two reads from a sysfs that lacks
// an entry.
func (fs FS) vanished(name string, cause error) error {
	return &NotFoundError{Spec: name, Reason: fmt.Sprintf("went away while it was read (%v)", cause)}
}

// near reports whether a name is likely to be what was meant: at most one edit in
// four letters away, and never more than two.
func near(wanted, name string) bool {
	wanted, name = strings.ToLower(wanted), strings.ToLower(name)
	if len(wanted) > 64 || len(name) > 64 || wanted == "" {
		return false
	}
	most := min(2, max(1, len(wanted)/4))
	return distance(wanted, name) <= most
}

// distance is the number of single-byte edits between two names (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, before[j]+cost)
		}
	}
	return row[len(b)]
}
