package prove

import (
	"slices"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/why"
)

// An Explanation is what weir why says of a place, from the facts of the same moment.
type Explanation struct {
	Report *why.Report // nil: nobody asked
	Place  int         // the place's index in it
}

// explaining are the codes of the findings that can be behind what could not be told.
func explaining() map[Reason][]string {
	return map[Reason][]string{
		Slow:   {"parent-stricter", "limit-above", "io-cost", "io-latency", "overlay-synchronous", "limit-below-slice", "kernel-bug"},
		Few:    {"limit-below-slice", "large-requests"},
		Large:  {"large-writeback", "large-requests", "limit-below-slice"},
		Others: {"foreign-inode", "inode-not-known"},
		Cache:  {"cached"},
		Hung:   {"slow-drain"},
		Killed: {"slow-drain"},

		Unwritten: {"ext4-data-journal"},
	}
}

// running are the codes of findings about a writer that is ahead of the disk.
var running = []string{"root-rule", "writer-runs-ahead", "slow-drain"}

// pacing are the codes of findings about what weir's pacer holds beside the kernel's rule.
var pacing = []string{"foreign-inode", "escapes-paced"}

// explain returns the numbers of the findings that are behind a row's verdict, and what
// must be said where the two do not agree.
func (x Explanation) explain(row Row, observed bool) (findings []int, warning string) {
	if x.Report == nil {
		return nil, ""
	}
	cells := x.cells(row)
	breaks := x.among(cells, func(f why.Finding) bool { return f.Severity == why.Breaks })
	no := slices.ContainsFunc(cells, func(c why.Cell) bool { return c.Held == why.No })
	coded := func(codes []string) []int {
		return x.among(cells, func(f why.Finding) bool { return slices.Contains(codes, f.Code) })
	}
	switch {
	case row.Verdict == NotHeld || row.Reason == Uncharged:
		if len(breaks) == 0 {
			breaks = coded([]string{"inode-not-known", "kernel-bug"})
		}
		if len(breaks) == 0 && row.Verdict == NotHeld {
			warning = "weir why knows no reason for this"
		}
		return breaks, warning
	case row.Verdict == Held || row.Verdict == HeldAtDevice:
		if no && !observed {
			return breaks, "it is held here because the load writes to a new file of its own"
		}
		if row.Verdict == HeldAtDevice {
			findings = coded(running)
		}
		if observed { // who holds it may be weir
			findings = append(findings, x.among(cells, func(f why.Finding) bool {
				return f.Severity == why.Note && slices.Contains(pacing, f.Code)
			})...)
		}
		return findings, ""
	case observed && row.Reason == Slow:
		return nil, "" // the target itself did no more
	}
	return coded(explaining()[row.Reason]), ""
}

// has reports whether a finding is about the place.
func (x Explanation) has(code string) bool {
	if x.Report == nil {
		return false
	}
	f, found := x.Report.Find(code)
	return found && slices.ContainsFunc(x.Report.Matrix, func(c why.Cell) bool {
		return c.Place == x.Place && slices.Contains(c.Findings, f.Number)
	})
}

// cells returns the cells of the matrix that a row is about. A load with many operations in
// flight does direct I/O; a target's own I/O may use any path.
func (x Explanation) cells(row Row) []why.Cell {
	path := row.Path
	if path == load.Async {
		path = load.Direct
	}
	var found []why.Cell
	for _, c := range x.Report.Matrix {
		if c.Place == x.Place && c.Read == row.Key.IsRead() && (path == "" || c.Path == path) {
			found = append(found, c)
		}
	}
	return found
}

// among returns the numbers of the findings that a condition holds for, and that are
// about the cells or about no cell at all.
func (x Explanation) among(cells []why.Cell, holds func(why.Finding) bool) []int {
	var numbers []int
	for _, f := range x.Report.Findings {
		about := func(c why.Cell) bool { return slices.Contains(c.Findings, f.Number) }
		if holds(f) && (slices.ContainsFunc(cells, about) || !slices.ContainsFunc(x.Report.Matrix, about)) {
			numbers = append(numbers, f.Number)
		}
	}
	return numbers
}
