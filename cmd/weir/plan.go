package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func newPlan(a *app) *cobra.Command {
	return cli.PlanVerbs(a.plan, func(cmd *cobra.Command) { a.cgroupFlag(cmd) }, a.completeTarget)
}

func (a *app) plan(ctx context.Context, p cli.Plan) error {
	config, err := planned.Load(a.root, p.Path, planned.ByHelper(a.helpers()))
	switch {
	case err != nil:
		return err
	case (p.Verb == "check" || p.Verb == "list") && a.out.JSON:
		return a.out.Document(api.PlansOf(config))
	case p.Verb == "check" || p.Verb == "list":
		text.Plans(&a.out, config, p.Path, p.Verb == "list")
		return nil
	}
	if _, err := a.io(); err != nil {
		return err
	}
	m := planned.Manager{Host: a.host, Config: config, Alone: true}
	r, err := m.Do(ctx, p.Verb, p.Target, p.DryRun)
	text.PlanNotes(&a.out, r)
	switch {
	case err != nil && r.IsEmpty():
		return text.Error(err)
	case p.DryRun:
		return errors.Join(text.Error(err), a.dryRun("plan", r.Steps()))
	case a.out.JSON:
		return errors.Join(text.Error(err), a.out.Document(api.PlanTargetsOf(r, text.Error)))
	}
	text.PlanTargets(&a.out, r)
	return text.Error(err)
}

// planAsked is what a plan asks for a target, or, without one, for a command; without a plan it is
// what the flags ask for.
func (a *app) planAsked(ctx context.Context, p cli.NamedPlan, spec string, asked []limit.Asked) ([]limit.Asked, error) {
	if p.Name == "" {
		return asked, nil
	}
	if _, err := a.io(); err != nil {
		return nil, err
	}
	return planned.Ask(ctx, a.host, p.Path, p.Name, spec)
}
