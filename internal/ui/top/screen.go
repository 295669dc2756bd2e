package top

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-io/weir/internal/base/plain"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/ui/cli"
)

// A Screen is the state of weir top on a terminal.
type Screen struct {
	Options
	Width, Height int  // of the terminal; 0: not known yet
	Color         bool // whether lines may be coloured

	beside   View // the newest one
	snapshot *watch.Snapshot
	newest   *watch.Snapshot
	facts    []fact // of newest
	paused   bool
	help     bool
	typing   bool   // the keys go into the filter
	detail   bool   // of the group under the cursor
	above    int    // how many lines of the details are above the screen
	cursor   string // the path of a group; empty: the first
	curves   curves
	measured *Measuring
	reason   reason
	spare    []row // room for rows
}

// Show takes a new reading. A paused screen notes it for the curves and measurements only.
func (s *Screen) Show(v View) {
	n := v.Snapshot
	s.beside = v
	if s.curves == nil {
		s.curves, s.measured = curves{}, NewMeasuring()
	}
	s.newest, s.facts = n, factsOf(n, s.facts)
	s.curves.add(s.facts)
	s.measured.look(n, s.facts)
	if !s.paused || s.snapshot == nil {
		s.snapshot = n
	}
}

// Press does what a key asks for, in bubbletea's spelling; quit is true if it asks for the end.
func (s *Screen) Press(key string) (quit bool) {
	if key == "ctrl+c" {
		return true
	}
	if s.typing {
		s.edit(key)
		return false
	}
	switch key {
	case "q":
		return true
	case "?":
		s.help, s.above = !s.help, 0
	case "/":
		s.typing, s.help, s.detail = true, false, false
	case "esc":
		s.back()
	case "enter":
		s.detail, s.above = !s.detail && s.snapshot != nil, 0
	case "up", "k":
		s.move(-1)
	case "down", "j":
		s.move(1)
	case "pgup":
		s.page(-1)
	case "pgdown":
		s.page(1)
	case "left":
		s.sortBy(-1)
	case "right", "s":
		s.sortBy(1)
	case "r":
		s.Reverse = !s.Reverse
	case "o":
		s.Active = !s.Active
	case "a":
		s.All = !s.All
	case "t":
		s.Tree = !s.Tree
	case "space", " ":
		s.paused = !s.paused
	}
	return false
}

// back leaves what was opened last, and then the filter.
func (s *Screen) back() {
	switch {
	case s.help:
		s.help, s.above = false, 0
	case s.detail:
		s.detail = false
	default:
		s.Filter = ""
	}
}

// filterMost bounds the filter, in characters.
const filterMost = 64

// edit changes the filter.
func (s *Screen) edit(key string) {
	switch {
	case key == "enter":
		s.typing = false
	case key == "esc":
		s.typing, s.Filter = false, ""
	case key == "backspace":
		if r := []rune(s.Filter); len(r) > 0 {
			s.Filter = string(r[:len(r)-1])
		}
	case key == "space":
		s.edit(" ")
	case utf8.RuneCountInString(key) == 1 && utf8.RuneCountInString(s.Filter) < filterMost:
		s.Filter += key
	}
}

func (s *Screen) sortBy(step int) {
	all := Columns()
	at := max(slices.Index(all, s.Sort), 0)
	if s.Sort == "" {
		at = slices.Index(all, Limit)
	}
	s.Sort, s.Tree = all[(at+step+len(all))%len(all)], false
}

// rows are those of the table now, until they are asked for again. As long as the cursor is on the first one,
// only those that can be seen, or reached by one key, are in their order.
func (s *Screen) rows() []row {
	if s.snapshot == nil {
		return nil
	}
	most := 0
	if s.cursor == "" {
		most = s.room() + 1
	}
	facts := s.facts
	if s.snapshot != s.newest {
		facts = nil
	}
	s.spare = rowsOf(s.snapshot, facts, s.Options, s.spare, most)
	return s.spare
}

// at is the place of the cursor in rows: the first one's, if its group is gone.
func (s *Screen) at(rows []row) int {
	return max(slices.IndexFunc(rows, func(r row) bool { return r.Path == s.cursor }), 0)
}

func (s *Screen) move(by int) {
	rows := s.rows()
	if len(rows) == 0 {
		return
	}
	s.cursor, s.above = rows[min(max(s.at(rows)+by, 0), len(rows)-1)].Path, 0
}

// page goes to the next screen of the groups, or of the details.
func (s *Screen) page(by int) {
	if s.detail || s.help {
		s.above = max(s.above+by*max(s.Height-2, 1), 0) // one line stays
		return
	}
	s.move(by * s.room())
}

// room is how many rows the table has, at least one.
func (s *Screen) room() int {
	head := 0
	if s.snapshot != nil {
		head = len(headOf(s.snapshot, s.beside.Source, s.Width))
	}
	return max(s.Height-head-2, 1) // the table's head, and the keys
}

// known is what is known beside the snapshot.
func (s *Screen) known() beside { return beside{s.beside.Plans, s.beside.Told, s.measured} }

const keysLine = "q quit  ? help  / filter  ←→ sort  o active  ⏎ details"

func helpLines() []string {
	return []string{
		"q, ctrl+c    quit",
		"↑ ↓, j k     choose a group; page up and down: many at once",
		"enter        everything about the group; page down: the rest; enter, esc: back",
		"/            show only groups with some text in their names; esc: all again",
		"← →, s       sort by another column",
		"r            reverse the order",
		"t            show the groups as a tree, in the order of paths",
		"o            show only groups that did I/O in the last second",
		"a            show also groups that have no limit and did no I/O",
		"space        freeze the screen; again: go on",
		"",
		"OF LIMIT is the rate that is nearest to its limit, in percent of the limit.",
		"! marks a group that exceeds a limit, or whose limits are not expected to hold all I/O.",
		"WAIT is the share of time in which tasks of the group waited for I/O (cgroup v2).",
		"DIRTY is the page cache of the group that is not on disk yet.",
		"MEASURED is whether its limits were held while weir watched (wide terminals).",
		"PLAN is the plan that is for the group (wide terminals).",
		"– means that a value is unknown, or that there is none.",
	}
}

// Text is what the terminal shows: at most Height lines of at most Width columns.
func (s *Screen) Text() string {
	var all []string
	below := 0
	switch rows := s.rows(); {
	case s.snapshot == nil:
		all = []string{"reading …"}
	case s.help:
		all, below = s.scrolled(helpLines())
	case s.detail && len(rows) > 0:
		g := rows[s.at(rows)].Group
		b := s.known()
		all = append(Detail(g, b.plans[g.Path], b.Of(g.Path)), b.found(g.Path, s.Width)...)
		all = append(all, s.reason.lines(g, s.Width)...)
		all = append(wrapped(all, s.Width), s.curves.lines(g.Path, s.Width)...)
		all, below = s.scrolled(all)
	default:
		all = s.table(rows)
	}
	return s.fit(all, below)
}

// scrolled is what of the details is on the screen, and how many lines are below it.
func (s *Screen) scrolled(all []string) (shown []string, below int) {
	room := s.Height - 1 // the keys
	if room < 1 || len(all) <= room {
		s.above = 0
		return all, 0
	}
	s.above = min(s.above, len(all)-room)
	return all[s.above : s.above+room], len(all) - room - s.above
}

// table has as many rows as there is room for, those around the cursor.
func (s *Screen) table(rows []row) []string {
	all := headOf(s.snapshot, s.beside.Source, s.Width)
	if len(rows) == 0 {
		return append(all, "no group to show: "+s.whyNone())
	}
	cursor, room := s.at(rows), s.room()
	first := max(0, min(cursor-room/2, len(rows)-room))
	shown := rows[first:min(first+room, len(rows))]
	b := s.known()
	text := lines(rows, shown, b, max(s.Width-2, 1))
	all = append(all, s.paint(bold, "  "+text[0]))
	for i, r := range shown {
		mark := "  "
		if first+i == cursor {
			mark = "▸ "
		}
		color := colorOf(r.Group)
		if b.told(r.Path) == notHeldWord {
			color = red
		}
		all = append(all, s.paint(color, mark+text[i+1]))
	}
	return all
}

// fit cuts the lines to the terminal, and puts the keys below them. below is how many lines of the details
// have no room.
func (s *Screen) fit(all []string, below int) string {
	if s.Height > 1 && len(all) > s.Height-1 {
		all = all[:s.Height-1]
	}
	keys := keysLine
	switch {
	case s.typing:
		keys = "/" + plain.Line(s.Filter) + "▏  enter: done, esc: all groups"
	case s.paused:
		keys = "frozen (space: go on)  " + keys
	case below > 0:
		keys = "page down: " + cli.Plural(below, "more line", "more lines") + "  " + keys
	case s.Filter != "":
		keys = "filter " + plain.Quoted(s.Filter) + " (esc: all)  " + keys
	}
	all = append(all, keys)
	if s.Width > 0 {
		for i, line := range all {
			all[i] = cutPainted(line, s.Width)
		}
	}
	return strings.Join(all, "\n")
}
