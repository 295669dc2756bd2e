package why

import (
	"slices"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/place"
)

// A rule finds reasons among the facts.
type rule func(Facts) []Finding

// rules are all there are, in the order in which findings of one severity are shown.
var rules = []rule{
	noController, notBuilt, readOnly,
	v1Writeback, rootRules, pacedHere, lapsed, memoryElsewhere, ioNotEnabled, rootGroup,
	noDevice, mountsWithout, dax, dataJournal, journalWaits, noCgroupWriteback, foreignInode, escapes,
	ruleElsewhere, ruleBeneath, mountWithoutRule, partition,
	parentStricter, limitAbove, flat, unitDiffers, unitConflicts, mayBeLost, recordDiffers, recordLacks, recordEmpty,
	drains, runsAhead, largeWriteback, backlog, cached,
	lowLimit, largeRequests, kernelBugs, overlayAsync,
	otherPolicies, swappedOut, swapHere,
}

// Judge lets all rules see the facts.
func Judge(f Facts) Report {
	r := Report{Target: f.Target, Kernel: f.Release.Text, Mounted: append([]Mounted{}, f.Mounted...), Dirty: dirtyOf(f.Dirty),
		Supposed: !f.limited(), Places: []PlaceID{}, Findings: []Finding{}}
	if f.IO != nil {
		r.Group = &GroupID{f.Group.Path, int(f.Group.Version), f.Group.Owner, len(f.Group.Processes)}
	}
	for _, p := range f.Places {
		r.Places = append(r.Places, placeID(p))
	}
	for _, find := range rules {
		r.Findings = append(r.Findings, find(f)...)
	}
	r.Findings = append(r.Findings, unexplained(f, r.Findings)...)
	r.Findings = slices.DeleteFunc(r.Findings, f.idle)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return a.Severity.rank() - b.Severity.rank() })
	for i := range r.Findings {
		one := &r.Findings[i]
		one.Number = i + 1
		one.Evidence, one.Fixes = append([]Evidence{}, one.Evidence...), append([]Fix{}, one.Fixes...)
		for j := range one.Fixes {
			one.Fixes[j].Lines = append([]string{}, one.Fixes[j].Lines...)
		}
	}
	r.Matrix = matrix(f, r.Findings, r.Supposed)
	return r
}

func (s Severity) rank() int { return slices.Index([]Severity{Breaks, Hurts, Note}, s) }

func placeID(p Place) PlaceID {
	id := PlaceID{Spec: p.Spec, Chain: p.Chain.String(), Devices: []DeviceID{}}
	for _, d := range p.Devices {
		id.Devices = append(id.Devices, DeviceID{d.Node, d.Number, d.Limit})
	}
	return id
}

// limited reports whether any place has a limit, named or in force.
func (f Facts) limited() bool {
	return slices.ContainsFunc(f.Places, func(p Place) bool { return p.bounds(true) || p.bounds(false) })
}

// bounds reports whether a device of the place has a limit on reads, or on writes.
func (p Place) bounds(read bool) bool {
	return slices.ContainsFunc(p.Devices, func(d Device) bool {
		return slices.ContainsFunc(limit.Keys[:], func(k limit.Key) bool {
			_, bound := d.Limit.Get(k).Number()
			return bound && k.IsRead() == read
		})
	})
}

// matrix makes the cells of all places. A synchronous read is a buffered one, and has
// no cell.
func matrix(f Facts, findings []Finding, supposed bool) []Cell {
	cells := []Cell{}
	if f.IO == nil {
		return cells
	}
	for i, p := range f.Places {
		for _, read := range []bool{false, true} {
			for _, path := range paths {
				if read && path == load.Sync {
					continue
				}
				c := Cell{Place: i, Path: path, Read: read, Findings: []int{}}
				if !supposed && !p.bounds(read) && p.Err == nil {
					c.Held = NoLimit
				} else {
					c.Held, c.Mechanism = f.mechanism(p, path, read)
				}
				c.explain(findings)
				cells = append(cells, c)
			}
		}
	}
	return cells
}

// explain puts the findings into the cell. What breaks ends what holds.
func (c *Cell) explain(findings []Finding) {
	for _, f := range findings {
		if !f.cells.has(*c) {
			continue
		}
		if c.Held == NoLimit && !f.cells.astray {
			continue
		}
		c.Findings = append(c.Findings, f.Number)
		switch {
		case f.cells.cannot && c.Held != No:
			c.Held, c.Mechanism = Unknown, ""
		case f.Severity == Breaks && !f.cells.cannot:
			c.Held, c.Mechanism = No, ""
		}
	}
}

func (s scope) has(c Cell) bool {
	return slices.Contains(s.paths, c.Path) && (c.Read && s.reads || !c.Read && s.writes) &&
		(s.places == nil || slices.Contains(s.places, c.Place))
}

// idle reports that a finding breaks what has no limit anyway.
func (f Facts) idle(one Finding) bool {
	if one.Severity != Breaks || one.cells.astray || !f.limited() {
		return false
	}
	for i, p := range f.Places {
		concerned := one.cells.places == nil || slices.Contains(one.cells.places, i)
		if concerned && (p.Err != nil || one.cells.reads && p.bounds(true) || one.cells.writes && p.bounds(false)) {
			return false
		}
	}
	return true
}

// unexplained names the reason of place.Kernel for writes that no rule has explained.
func unexplained(f Facts, findings []Finding) []Finding {
	var more []Finding
	for i, p := range f.Places {
		if p.Err != nil || f.IO == nil || f.expect(p).Buffered.Mechanism != place.Nothing {
			continue
		}
		cell := Cell{Place: i, Path: load.Buffered}
		explained := slices.ContainsFunc(findings, func(one Finding) bool { return one.Severity == Breaks && one.cells.has(cell) })
		if !explained {
			more = append(more, Finding{Code: "no-writeback", Severity: Breaks, cells: writtenBack.at(i),
				Text: "Buffered writes are not held: " + p.WhyNot + "."})
		}
	}
	return more
}

// placesWhere lists the places that a condition holds for.
func (f Facts) placesWhere(holds func(Place) bool) []int {
	var found []int
	for i, p := range f.Places {
		if holds(p) {
			found = append(found, i)
		}
	}
	return found
}
