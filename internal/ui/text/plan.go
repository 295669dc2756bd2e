package text

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/ui/cli"
)

// Plans says how large a configuration is; with all, it prints the plans, and which targets they
// are for. Path is the file or directory that the command line names; empty: the usual directory.
func Plans(out *cli.Out, c *plans.Config, path string, all bool) {
	switch {
	case len(c.Files) == 0:
		out.Print("there are no plans: %s has no file that ends in .yaml or .yml", cmp.Or(path, planned.Dir))
		return
	case !all || len(c.Plans)+len(c.Assignments) == 0:
		out.Print("%s, %s: %s", cli.Plural(len(c.Plans), "plan", "plans"), cli.Plural(len(c.Assignments), "assignment", "assignments"), strings.Join(c.Files, ", "))
		return
	}
	rows := [][]string{{"PLAN", "LIMIT", "ON", "WRITTEN IN"}}
	for _, p := range c.Plans {
		name, at := p.Name, p.At.String()
		if p.Extends != "" {
			name += " (extends " + p.Extends + ")"
		}
		add := func(l limit.Limit, on string) {
			rows = append(rows, []string{name, l.String(), on, at})
			name, at = "", ""
		}
		if !p.Limit.IsZero() {
			add(p.Limit, "every disk")
		}
		for _, one := range p.On {
			add(one.Limit, one.On)
		}
	}
	out.Text(cli.Table(rows))
	rows = [][]string{{"TARGETS", "PLAN", "WRITTEN IN"}}
	if len(c.AllowLabels) > 0 {
		rows = append(rows, []string{"that choose it by their own label", strings.Join(c.AllowLabels, ", "), "allow-labels"})
	}
	for _, a := range c.Assignments {
		rows = append(rows, []string{targetsOf(a), a.Plan, a.At.String()})
	}
	rows = append(rows, []string{"other containers, pods and domains", c.Default, "default"})
	out.Print("")
	out.Text(cli.Table(rows))
}

// targetsOf says which targets an assignment is for.
func targetsOf(a plans.Assignment) string {
	var parts []string
	switch {
	case a.Kind == "user" && a.From == a.To:
		parts = append(parts, fmt.Sprintf("user %d", a.From))
	case a.Kind == "user":
		parts = append(parts, fmt.Sprintf("users %d-%d", a.From, a.To))
	case a.Kind == "pod":
		name := func(pattern string) string {
			if pattern == "" {
				return "*"
			}
			return pattern
		}
		parts = append(parts, "pod:"+name(a.Namespace)+"/"+name(a.Name))
	case a.Kind != "":
		parts = append(parts, a.Kind+":"+a.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Labels)) {
		parts = append(parts, "label "+name+"="+a.Labels[name])
	}
	return strings.Join(parts, ", ")
}

// PlanNotes says what the core has to say of each target that was changed, or would be, and what
// is expected not to hold there.
func PlanNotes(out *cli.Out, r planned.Report) {
	for _, t := range r.Targets {
		for _, notes := range [][]note.Note{t.Preview.Notes, t.Result.Noted, t.Result.Notes} {
			for _, n := range notes {
				if !strings.Contains(n.Text, t.Name) {
					n.Text = t.Name + ": " + n.Text
				}
				Notes(out, []note.Note{n})
			}
		}
		for _, e := range append(t.Preview.Decided.Places, t.Result.Decided.Places...) {
			if _, not, _ := e.Words(); len(not) > 0 {
				out.Say("%s: %s: expected NOT to hold: %s", t.Name, e.Device.Node, strings.Join(not, "; "))
			}
		}
	}
}

// PlanTargets prints targets with their plans, and what differs.
func PlanTargets(out *cli.Out, r planned.Report) {
	for _, t := range r.Targets {
		out.Print("%s  %s", t.Name, planState(t))
		if t.Choice.Refused != "" {
			out.Print("  %s", t.Choice.Refused)
		}
		for _, d := range t.Rows {
			for _, k := range limit.Keys {
				now, plan := boundText(d.Now.Get(k), k), boundText(d.Plan.Get(k), k)
				switch {
				case now != plan:
					out.Print("  %s (%s) %s: %s, now %s", d.Node, d.Number, k.Direction(), changedText(t, now, plan), nowText(t, now, plan))
				case now != "none":
					out.Print("  %s (%s) %s: %s", d.Node, d.Number, k.Direction(), now)
				}
			}
		}
		if t.Unpaced && t.State == planned.Differs {
			out.Print("  weir's pacer does not hold its buffered writes")
		}
	}
	for _, name := range r.Others {
		out.Print("%s  has a limit that no plan names; weir leaves it alone", name)
	}
	if r.IsEmpty() {
		out.Print("no running target has a plan")
	}
}

// changedText is what a rate was or is to be, and nowText what it is.
func changedText(t planned.Target, now, plan string) string {
	if t.State == planned.Changed {
		return "was " + now
	}
	return "plan " + plan
}

func nowText(t planned.Target, now, plan string) string {
	if t.State == planned.Changed {
		return plan
	}
	return now
}

func planState(t planned.Target) string {
	plan := "no plan"
	if t.Choice.IsNone() && (t.State == planned.Differs || t.State == planned.Changed) {
		plan = "no plan any more"
	}
	if !t.Choice.IsNone() {
		plan = fmt.Sprintf("plan %s (%s)", t.Choice.Name(), t.Choice.By)
	}
	switch t.State {
	case planned.NoPlan:
		return plan
	case planned.InForce:
		return plan + ": in force"
	case planned.Differs:
		return plan + ": its limits differ"
	case planned.Changed:
		return plan + ": changed"
	case planned.Failed:
		return plan + ": failed"
	case planned.Kept:
		return "weird has set its limits by what it is told of the pod; weir leaves them alone"
	case planned.Gone:
		return plan + ": it is gone"
	}
	return plan + ": it does not run"
}
