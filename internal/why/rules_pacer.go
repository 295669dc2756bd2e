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
	one := Finding{Code: "paced", Severity: Note, cells: writtenBack.at(places...),
		Text:  "weir's pacer holds what the group writes through the page cache: it stops all its processes for moments, also those that compute or read, and some reads that it interrupts come back short (of /dev/zero and sockets, as after any signal).",
		Fixes: []Fix{{Text: "where most of the I/O is no buffered writing, do without it: --hold kernel"}}}
	if p := f.Group.Paced; p != nil {
		one.Evidence = []Evidence{{p.Record, fmt.Sprintf("%d bytes a second", p.WBPS)}}
		if p.Missed != "" {
			one.Text += " But " + p.Missed + "."
		}
		one.Fixes[0].Lines = []string{fmt.Sprintf("weir clear %s", f.Target)}
	}
	found := []Finding{one}
	for _, i := range places {
		if p := f.Places[i]; f.expect(p).Buffered.Why != "" {
			found = append(found, Finding{Code: "paced-bytes-only", Severity: Note, cells: writtenBack.at(i),
				Text: "The limit of operations does not bind what is written through the page cache: " + f.expect(p).Buffered.Why + "."})
		}
	}
	return found
}

// pace is what weir itself can do for buffered writes.
func (f Facts) pace() Fix {
	fix := Fix{Text: "have weir hold them: its pacer stops the group's processes for moments"}
	if f.Group.ToMake || f.Target == "" {
		fix.Text += " (weir run and weir set do so by themselves, as root)"
		return fix
	}
	fix.Lines = f.setAgain(" --hold pacer")
	return fix
}
