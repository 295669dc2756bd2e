package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/prove"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/why"
)

// An asking is the question to weir why that a proof measures the answer to.
type asking struct {
	command string // that asks it
	report  *why.Report
}

// ask asks weir why about all places at once, as its command does, and gives each place the
// answer about it. named are directories of a target. Without any, as for an observed target,
// it asks about all disks that the target has mounted.
func (a *app) ask(ctx context.Context, t *target.Target, places []prove.Place, f *proveFlags) (asking, error) {
	sources, err := a.whySources()
	if err != nil {
		return asking{}, err
	}
	q := why.Question{Target: t}
	if t == nil {
		q.Hold = f.hold
	}
	if byDisk := t != nil && len(f.places) == 0; !byDisk {
		for _, p := range places {
			spot := place.Spot{Asked: limit.Asked{On: p.Dir, Limit: p.Limit}}
			if p.Chain != nil {
				spot.Chain = *p.Chain
			}
			q.Places = append(q.Places, spot)
		}
	}
	facts, err := why.Gather(ctx, sources, q)
	if err != nil {
		return asking{}, err
	}
	report := why.Judge(facts)
	for i := range places {
		at := slices.IndexFunc(report.Places, func(id why.PlaceID) bool {
			return slices.ContainsFunc(id.Devices, func(d why.DeviceID) bool { return d.Number == places[i].Device.Number })
		})
		if len(q.Places) > 0 {
			at = i
		}
		if at >= 0 {
			places[i].Explained = prove.Explanation{Report: &report, Place: at}
		}
	}
	return asking{a.whyCommand(t, f), &report}, nil
}

// whyCommand spells the question. A scratch disk is gone by then, and its question is
// that of any place.
func (a *app) whyCommand(t *target.Target, f *proveFlags) string {
	command := "weir why"
	if t != nil {
		command += " " + cli.Quote(t.String())
	}
	for _, dir := range f.places {
		command += " --on " + cli.Quote(dir)
	}
	for _, l := range f.on {
		command += " " + cli.Flags(l)
	}
	if t == nil && f.hold != limit.HoldAuto {
		command += " --hold " + f.hold.String()
	}
	if a.version != "" && a.version != "auto" {
		command += " --cgroup " + a.version
	}
	return command
}

// findings are those that rows name, in weir why's order.
func (q asking) findings(rows []prove.Row) []why.Finding {
	named := []why.Finding{}
	if q.report == nil {
		return named
	}
	for _, f := range q.report.Findings {
		if slices.ContainsFunc(rows, func(r prove.Row) bool { return slices.Contains(r.Findings, f.Number) }) {
			named = append(named, f)
		}
	}
	return named
}

// printFindings prints the causes of the rows' verdicts, and where to read on.
func (a *app) printFindings(r report) {
	findings := r.asked.findings(r.rows)
	for _, f := range findings {
		a.out.Print("[%d] %s: %s", f.Number, f.Code, f.Text)
	}
	if len(findings) > 0 {
		a.out.Print("    %s", r.asked.command)
	}
}

// marks are the numbers of a row's findings, as they stand behind its verdict.
func marks(row prove.Row) string {
	text := ""
	for _, n := range row.Findings {
		text += fmt.Sprintf(" [%d]", n)
	}
	return text
}
