package quota

import (
	"fmt"
	"strconv"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
)

// Bounds are what a project may have; 0 means no limit. A soft limit may be exceeded for the
// file system's grace time (by default a week).
type Bounds struct {
	Bytes     uint64 `json:"bytes"`
	SoftBytes uint64 `json:"soft_bytes"`
	Files     uint64 `json:"files"`
	SoftFiles uint64 `json:"soft_files"`
}

// Usage is what a project has: bytes of blocks, and inodes.
type Usage struct {
	Bytes uint64 `json:"bytes"`
	Files uint64 `json:"files"`
}

// A Change is the requested limits; nil leaves a limit as it is.
type Change struct{ Bytes, SoftBytes, Files, SoftFiles *uint64 }

// on applies a change. Space is bounded in whole blocks, so that no more than what was asked
// for is stored.
func (c Change) on(b Bounds, block uint64) Bounds {
	for _, one := range []struct {
		asked *uint64
		bound *uint64
		unit  uint64
	}{{c.Bytes, &b.Bytes, block}, {c.SoftBytes, &b.SoftBytes, block}, {c.Files, &b.Files, 1}, {c.SoftFiles, &b.SoftFiles, 1}} {
		if one.asked != nil {
			*one.bound = *one.asked / one.unit * one.unit
		}
	}
	return b
}

// check refuses bounds that can be none.
func (c Change) check(b Bounds, block uint64) error {
	switch {
	case c.Bytes != nil && *c.Bytes > 0 && b.Bytes == 0, c.SoftBytes != nil && *c.SoftBytes > 0 && b.SoftBytes == 0:
		return &SpecError{fmt.Sprintf("a size is at least one block of the file system, %d bytes", block)}
	case b.Bytes > 0 && b.SoftBytes > b.Bytes:
		return &SpecError{fmt.Sprintf("the soft limit of %s is above the hard one of %s", Size(b.SoftBytes), Size(b.Bytes))}
	case b.Files > 0 && b.SoftFiles > b.Files:
		return &SpecError{fmt.Sprintf("the soft limit of %d files is above the hard one of %d", b.SoftFiles, b.Files)}
	case b == Bounds{}:
		return fault.With(&SpecError{"no limit would be left"}, fault.Remedy{Do: fault.QuotaClear})
	}
	return nil
}

// over says by how much usage is above the hard bounds, or "".
func (b Bounds) over(u Usage) string {
	switch {
	case b.Bytes > 0 && u.Bytes > b.Bytes:
		return fmt.Sprintf("holds %s, which is %s more than %s", Size(u.Bytes), Size(u.Bytes-b.Bytes), Size(b.Bytes))
	case b.Files > 0 && u.Files > b.Files:
		return fmt.Sprintf("has %d files and directories, which is %d more than %d", u.Files, u.Files-b.Files, b.Files)
	}
	return ""
}

// String names the bounds for people: "10.0 MB and 1000 files".
func (b Bounds) String() string {
	text := ""
	add := func(hard, soft uint64, spell func(uint64) string) {
		one := ""
		switch {
		case hard > 0 && soft > 0:
			one = fmt.Sprintf("%s (soft %s)", spell(hard), spell(soft))
		case hard > 0:
			one = spell(hard)
		case soft > 0:
			one = "soft " + spell(soft)
		default:
			return
		}
		if text != "" {
			text += " and "
		}
		text += one
	}
	add(b.Bytes, b.SoftBytes, Size)
	add(b.Files, b.SoftFiles, func(n uint64) string { return strconv.FormatUint(n, 10) + " files" })
	if text == "" {
		return "no limit"
	}
	return text
}

// Size spells an amount of space.
func Size(n uint64) string { return limit.FormatMeasured(float64(n)) }

// A SpecError means that what was asked for can be on no directory.
type SpecError struct{ Message string }

func (e *SpecError) Error() string { return "quota: " + e.Message }

// Class makes it fault.WrongUse.
func (e *SpecError) Class() fault.Class { return fault.WrongUse }
