package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/agent/held"
	"github.com/weir-io/weir/internal/agent/routes"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/ui/cli"
)

func newStatus(out *cli.Out) *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "status [TARGET]",
		Short: "Show what weird run keeps in force",
		Long: "Show the targets with a plan, whether their limits are in force, since when, and why not. CHANGED BY OTHERS counts\n" +
			"how often something else has changed the limits. Below the table, weird lists what it cannot do or see, and why.\n" +
			"With TARGET, show only that target, with what weird has measured of each of its limits.\n\n" +
			"in-force means that the kernel's files have the limits of the plan. HELD is a measurement. held: the target was at its\n" +
			"limit for at least 5 s, and the kernel charged its cgroup at most 1.05 times the limit. not-held: the kernel charged\n" +
			"more. not-told: weird has measured nothing, because the target stayed below its limit, or because the kernel charges\n" +
			"some of its I/O to another cgroup. weir prove measures with a load of its own.",
		Example: "  weird status\n  weird status docker:web",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("status: %q: too many arguments; see weird status --help", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return status(cmd.Context(), out, socket, args)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", health.Socket, "the `PATH` of weird's socket")
	cmd.Flags().BoolVar(&out.JSON, "json", false, "print one JSON document (docs/json.md)")
	return cmd
}

func status(ctx context.Context, out *cli.Out, socket string, args []string) error {
	var a api.Agent
	if err := askAsMember(ctx, socket, routes.Status, &a); err != nil {
		return err
	}
	if len(args) == 1 {
		a.Targets = slices.DeleteFunc(a.Targets, func(t api.AgentTarget) bool { return t.Target != args[0] })
		if len(a.Targets) == 0 {
			return &targets.NotFound{Target: args[0], Why: "weird knows no target of this name that has a plan; weird status lists them"}
		}
	}
	if out.JSON {
		return out.Document(a)
	}
	showStatus(out, a, time.Now())
	if len(args) == 1 {
		showHeld(out, a.Targets[0], time.Now())
	}
	return nil
}

// askAsMember asks the daemon: at its usual socket, or, as a user who may not, at those for the groups.
func askAsMember(ctx context.Context, socket, route string, into any) error {
	err := health.Ask(ctx, socket, route, into)
	if socket == health.Socket && errors.Is(err, fs.ErrPermission) {
		err = routes.Ask(ctx, routes.Dir, route, into)
	}
	return err
}

// showHeld prints what was measured of each limit of a target.
func showHeld(out *cli.Out, t api.AgentTarget, now time.Time) {
	for _, l := range t.Held.Limits {
		key, _ := limit.KeyNamed(l.Rate)
		what := fmt.Sprintf("%s of %s on %s: %s", key.Direction(), limit.PerSecond(l.Limit).Format(key), cmp.Or(l.Device, l.Number.String()), l.State)
		if l.Measured == nil || l.Since == nil || l.From == nil || l.To == nil {
			out.Print("%s: %s", what, l.Why)
			continue
		}
		out.Print("%s since %s; last measured %s, over %s until %s ago", what, since(*l.Since, now),
			measuredRate(*l.Measured, key), cli.Duration(l.To.Sub(*l.From)), since(*l.To, now))
	}
	if why := t.Held.Why; why != "" {
		if t.Held.Code != "" {
			why = t.Held.Code + ": " + why
		}
		out.Print("%s", why)
	}
}

func measuredRate(perSec float64, k limit.Key) string {
	if k.IsOps() {
		return fmt.Sprintf("%.0f ops/s", perSec)
	}
	return limit.FormatMeasured(perSec) + "/s"
}

func heldSince(h api.AgentHeld, now time.Time) string {
	if h.Since == nil {
		return h.State
	}
	return h.State + " " + since(*h.Since, now)
}

// since says how long ago something was. After the clock was set back that cannot be told of what was before.
func since(at, now time.Time) string {
	if at.After(now.Add(time.Second)) {
		return "–"
	}
	return cli.Duration(max(now.Sub(at), 0))
}

// showStatus prints the targets, and then what is wrong.
func showStatus(out *cli.Out, a api.Agent, now time.Time) {
	if len(a.Targets) > 0 {
		rows := [][]string{{"TARGET", "PLAN", "STATE", "SINCE", "HELD", "CHANGED BY OTHERS"}}
		for _, t := range a.Targets {
			rows = append(rows, []string{t.Target, t.Plan, t.State, since(t.Since, now), heldSince(t.Held, now), fmt.Sprint(t.Drifts)})
		}
		out.Text(cli.Table(rows, 3, 5))
	} else {
		out.Print("no running target has a plan; weir plan list shows the plans, and which targets they are for")
	}
	for _, t := range a.Targets {
		if t.Finding != "" {
			out.Print("%s: %s", t.Target, t.Finding)
		}
		if t.Held.State == string(held.NotHeld) && len(a.Targets) > 1 {
			out.Print("%s is not held: %s", t.Target, strings.TrimPrefix(t.Held.Code+": "+t.Held.Why, ": "))
		}
	}
	if a.Plans.Error != "" {
		out.Print("newer plans are not in force: %s", a.Plans.Error)
	}
	for _, s := range a.Sources {
		if s.Error != "" {
			out.Print("%s: %s", s.Kind, s.Error)
		}
	}
	if a.Runtime != nil && a.Runtime.Name == "" {
		out.Print("the container runtime does not ask weir before it starts containers: %s; enable NRI in the runtime, and check the socket of --nri", a.Runtime.Error)
	}
	if a.Unwatched != "" {
		out.Print("weird cannot watch cgroups, and finds new targets and changed limits up to 5 minutes late: %s", a.Unwatched)
	}
	for _, h := range a.Cgroups {
		if h.Unwatched > 0 || h.Left > 0 {
			out.Print("%s: weird learns late of what starts below %s; its log says why, and what to do", h.Hierarchy, cli.Plural(h.Unwatched+int(h.Left), "cgroup", "cgroups"))
		}
	}
}
