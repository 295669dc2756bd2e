package why

import (
	"fmt"

	"github.com/weir-io/weir/internal/place"
)

// paced reports whether weir's pacer holds what a place's limits bound of the bytes written
// through the page cache, or would where they are only named.
func (f Facts) paced(p Place) bool { return f.expect(p).Buffered.Mechanism == place.Pacer }

// pacedHere: the pacer holds the group, at a cost.
func pacedHere(f Facts) []Finding {
	places := f.placesWhere(f.paced)
	if len(places) == 0 {
		return nil
	}
	text := "weir's pacer holds the group's buffered writes"
	if why := f.Places[places[0]].WhyNot; why != "" {
		text += ", which the kernel alone would not: " + why
	}
	one := Finding{Code: "paced", Severity: Note, cells: writtenBack.at(places...),
		Text:  text + ". It pauses all processes of the group for moments, also those that compute or read. A pause can cut a read of /dev/zero or a socket short, as a signal can.",
		Fixes: []Fix{{Text: "if most of the I/O is not buffered writes, turn the pacer off: --hold kernel"}}}
	if p := f.Group.Paced; p != nil {
		one.Evidence = []Evidence{{p.Record, fmt.Sprintf("%d bytes per second", p.WBPS)}}
		if p.Missed != "" {
			one.Text += " But " + p.Missed + "."
		}
		one.Fixes[0].Lines = f.setAgain(" --hold kernel")
	}
	found := []Finding{one}
	for _, i := range places {
		if p := f.Places[i]; f.expect(p).Buffered.Why != "" {
			found = append(found, Finding{Code: "paced-bytes-only", Severity: Note, cells: writtenBack.at(i),
				Text: "The limit on operations does not apply to buffered writes: " + f.expect(p).Buffered.Why + "."})
		}
	}
	return found
}

// lapsed: the pacer was asked to hold the group, and does not.
func lapsed(f Facts) []Finding {
	if f.Group.Lapsed == "" {
		return nil
	}
	return []Finding{{Code: "pacer-lapsed", Severity: Hurts, cells: writtenBack,
		Evidence: []Evidence{{f.Group.Dir, "on record with weir's pacer, but not held"}},
		Text:     "weir's pacer was asked to hold the group, but does not hold it: " + f.Group.Lapsed + ".",
		Fixes:    []Fix{{Text: "ask the pacer again", Lines: f.setAgain("")}}}}
}

// pace is what weir itself can do for buffered writes.
func (f Facts) pace() Fix {
	fix := Fix{Text: "let weir hold buffered writes: its pacer pauses the group's processes for moments"}
	if f.Group.ToMake || f.Target == "" {
		fix.Text += " (weir run and weir set do this by default, as root)"
		return fix
	}
	fix.Lines = f.setAgain(" --hold pacer")
	return fix
}
