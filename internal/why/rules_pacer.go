package why

import (
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/limit"
)

// paced reports whether weir's pacer holds what a place's limits bound of buffered writes:
// bytes, not operations.
func (f Facts) paced(p Place) bool {
	if f.Group.Paced == nil || len(p.Devices) == 0 {
		return false
	}
	return !slices.ContainsFunc(p.Devices, func(d Device) bool {
		most, bytes := d.Limit.Get(limit.WBPS).Number()
		_, ops := d.Limit.Get(limit.WIOPS).Number()
		return !bytes || ops || f.Group.Paced.WBPS > most || !slices.Contains(f.Group.Paced.Devices, d.Number)
	})
}

// pacedHere: the pacer holds the group, at a cost.
func pacedHere(f Facts) []Finding {
	places := f.placesWhere(f.paced)
	if len(places) == 0 {
		return nil
	}
	return []Finding{{Code: "paced", Severity: Note, cells: writtenBack.at(places...),
		Evidence: []Evidence{{f.Group.Paced.Record, fmt.Sprintf("%d bytes a second", f.Group.Paced.WBPS)}},
		Text:     "weir's pacer holds what the group writes through the page cache: it stops all its processes for moments, also those that compute or read, and some reads that it interrupts come back short (of /dev/zero and sockets, as after any signal).",
		Fixes:    []Fix{{Text: "where most of the I/O is no buffered writing, do without it", Lines: []string{fmt.Sprintf("weir clear %s", f.Target)}}}}}
}

// pace is what weir itself can do for buffered writes.
func (f Facts) pace() Fix {
	fix := Fix{Text: "have weir hold them: its pacer stops the group's processes for moments"}
	if f.Group.ToMake || f.Target == "" {
		fix.Text += " (weir run does so by itself; weir set with --hold pacer)"
		return fix
	}
	for _, p := range f.Places {
		for _, d := range p.Devices {
			if rate := d.Limit.Get(limit.WBPS); rate.IsSet() && !rate.IsUnlimited() {
				fix.Lines = append(fix.Lines, fmt.Sprintf("weir set %s --hold pacer --write %s --on %s", f.Target, rate.Kernel(), d.Node))
			}
		}
	}
	slices.Sort(fix.Lines)
	fix.Lines = slices.Compact(fix.Lines)
	return fix
}
