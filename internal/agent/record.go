package agent

import (
	"fmt"

	"github.com/weir-io/weir/internal/agent/journal"
	"github.com/weir-io/weir/internal/agent/reconcile"
	"github.com/weir-io/weir/internal/planned"
)

// record adds an entry to the journal, if there is one. It does not wait.
func (a *Agent) record(e journal.Entry) {
	if a.options.Journal == nil {
		return
	}
	if e.By == "" {
		e.By = journal.ByWeird
	}
	a.options.Journal.Add(e)
}

// recordDeed adds what the loop has done or seen.
func (a *Agent) recordDeed(d reconcile.Deed) {
	e := journal.Entry{Target: d.Target.Name, Plan: d.Target.Plan, Why: d.Finding}
	if e.Why == "" {
		e.Why = whyOf(d.Why)
	}
	switch d.What {
	case reconcile.Put:
		e.What = journal.Set
	case reconcile.TakenOff:
		e.What = journal.Removed
	case reconcile.ByOthers:
		e.By, e.What = journal.ByOther, journal.Changed
	case reconcile.NotDone:
		e.What = journal.Failed
	case reconcile.GaveWay:
		e.What = journal.Left
	}
	for _, r := range d.Target.Rates {
		c := journal.Change{Device: r.Device, Node: r.Node, From: r.Now, To: r.Want}
		if e.By == journal.ByOther {
			c.From, c.To = c.To, c.From // the plan was in force
		}
		if c.From != c.To {
			e.Changes = append(e.Changes, c)
		}
	}
	if e.By == journal.ByOther && len(e.Changes) == 0 {
		return // the pacer has ended, and the limits are as they were
	}
	a.record(e)
}

// whyOf says why something was done.
func whyOf(w reconcile.Why) string {
	switch w {
	case reconcile.New:
		return "the target is new"
	case reconcile.Plan:
		return "its plan has changed"
	case reconcile.Drift:
		return "something else had changed its limits"
	case reconcile.Again:
		return "the last attempt failed"
	}
	return ""
}

// recordDone adds what a container runtime's question had weir do before the container's start.
func (a *Agent) recordDone(t planned.Target) {
	e := journal.Entry{What: journal.Set, Target: t.Name, Plan: t.Choice.Name(), Why: "the container runtime asked before it started a container"}
	for _, d := range t.Rows {
		if d.Now != d.Plan {
			e.Changes = append(e.Changes, journal.Change{Device: d.Number, Node: d.Node, From: d.Now, To: d.Plan})
		}
	}
	a.record(e)
}

// plural is "1 plan" or "2 plans".
func plural(n int, one string) string {
	if n != 1 {
		one += "s"
	}
	return fmt.Sprint(n, " ", one)
}

// recordPlans adds that plans were taken, or why not. by is who asked for it; empty: nobody.
func (a *Agent) recordPlans(by string, files, plans int, err error) {
	e := journal.Entry{By: by, What: journal.Plans, Why: plural(plans, "plan") + " of " + plural(files, "file")}
	if err != nil {
		e.What, e.Why = journal.Refused, err.Error()
	}
	a.record(e)
}
