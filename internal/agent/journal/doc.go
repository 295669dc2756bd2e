// Package journal keeps what weir's agent has changed, and what it has seen others change: who, what,
// from, to and why. It is two files of bounded size, so it can be read while it is written, and it
// outlives the agent.
//
// Each line has a checksum. A line that a crash tore fails it, and readers leave that line out and
// count it. Writing never delays the agent: Add puts an entry into a bounded queue, and a goroutine
// writes it. What the queue or the disk does not take is counted in the next entry.
//
// When the newer file is full, it takes the older one's name; a reader opens both and looks again
// whether it has two files of one moment.
package journal

import (
	"time"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
)

// Dir is where the journal is, below the host's root.
const Dir = "/var/lib/weir/journal"

// What says what has happened.
type What string

// What happens.
const (
	Set     What = "set"        // weird has set a target's limits
	Removed What = "removed"    // weird has removed limits that it had set, because the target has no plan any more
	Changed What = "changed"    // somebody else has changed limits that were in force
	Failed  What = "failed"     // weird could not set the limits
	Left    What = "left-alone" // weird leaves a target alone, because somebody changes it again and again
	Plans   What = "plans"      // weird has loaded plans
	Refused What = "refused"    // weird has not taken newer plans
	Started What = "started"    // weird has started
	Stopped What = "stopped"    // weird has ended
)

// Who does it.
const (
	ByWeird = "weird"
	ByOther = "other" // another program; the kernel does not say which
)

// An Entry is one line of the journal.
type Entry struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"` // ByWeird, ByOther, or "uid 1000": who asked at the socket
	What    What      `json:"what"`
	Target  string    `json:"target,omitempty"` // empty: it is about weird itself
	Plan    string    `json:"plan,omitempty"`
	Changes []Change  `json:"changes,omitempty"`
	Why     string    `json:"why,omitempty"`
	// Lost is how many entries before this one could not be written.
	Lost uint64 `json:"lost,omitempty"`
}

// A Change is the limits on one device, before and after. Of both all four rates are set.
type Change struct {
	Device blkdev.Number `json:"device"`
	Node   string        `json:"node,omitempty"`
	From   limit.Limit   `json:"from"`
	To     limit.Limit   `json:"to"`
}

// Bounds of an entry: names and reasons come from others.
const (
	textMost    = 1 << 10 // bytes of each text
	changesMost = 64
	// lineMost bounds a line of the files, in bytes. Escaping makes a text up to six times as long.
	lineMost = 64 << 10
)

// bounded cuts an entry to its bounds.
func (e Entry) bounded() Entry {
	for _, text := range []*string{&e.By, &e.Target, &e.Plan, &e.Why} {
		*text = cut(*text)
	}
	e.Changes = append([]Change(nil), e.Changes[:min(len(e.Changes), changesMost)]...)
	for i := range e.Changes {
		e.Changes[i].Node = cut(e.Changes[i].Node)
	}
	return e
}

func cut(text string) string {
	if len(text) <= textMost {
		return text
	}
	end := textMost
	for end > textMost-utf8.UTFMax && !utf8.RuneStart(text[end]) { // half a character is none
		end--
	}
	return text[:end] + "…"
}
