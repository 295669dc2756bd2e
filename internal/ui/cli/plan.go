package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-io/weir/internal/limit"
)

// Plan are the words of weir plan.
type Plan struct {
	Verb   string // "check", "list", "show", "diff" or "apply"
	Path   string // of the plans; empty: the usual place
	Target string // of show
	DryRun bool   // of apply
}

// PlansFlag adds --plans to a verb.
func PlansFlag(flags *pflag.FlagSet, into *string) {
	flags.StringVar(into, "plans", "", "read plans from `PATH`, a file or a directory (default: the .yaml and .yml files in /etc/weir/plans.d)")
}

// A NamedPlan is --plan with --plans, for a verb that sets limits.
type NamedPlan struct{ Name, Path string }

// Register adds the flags to a verb.
func (p *NamedPlan) Register(flags *pflag.FlagSet) {
	flags.StringVar(&p.Name, "plan", "", "set the limits of the plan `NAME`, instead of limits given as flags")
	PlansFlag(flags, &p.Path)
}

// Resolve is that of Limits, which a plan takes the place of: it refuses limits beside a plan.
func (p *NamedPlan) Resolve(l *Limits) ([]limit.Asked, error) {
	switch {
	case p.Name == "" && p.Path != "":
		return nil, Usagef("--plans %s: name the plan with --plan NAME", p.Path)
	case p.Name != "" && len(l.words) > 0 && len(l.Places()) == len(l.words):
		return nil, Usagef("--plan %s: leave out --on %s; a plan's rates are on all disks that the target has mounted, and on the places that it names itself under \"on\"", p.Name, l.words[0].on)
	case p.Name != "" && len(l.words) > 0:
		return nil, Usagef("--plan %s: leave out the other limits, or write them into a plan that extends this one", p.Name)
	}
	return l.Resolve()
}

// PlanVerbs makes weir plan. run does a verb; more adds flags to those that look at targets, and
// complete completes a target.
func PlanVerbs(run func(context.Context, Plan) error, more func(*cobra.Command), complete cobra.CompletionFunc) *cobra.Command {
	top := &cobra.Command{
		Use:   "plan",
		Short: "Apply named limits to containers, units and machines",
		Long: "A plan is a named set of limits. The files in /etc/weir/plans.d define plans, and say which targets have which plan.\n" +
			"weir plan compares them with the limits in force on this host, and sets those that differ.\n\n" +
			"weir reads the .yaml and .yml files there in the order of their names, and takes all of them or none. It names file,\n" +
			"line and column of a mistake. docs/guide/plans.md describes the format, and docs/plans.schema.json is its JSON schema for editors.",
		Example: "  weir plan check\n  weir plan diff\n  weir plan apply",
		Args:    NoSuchVerb,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	add := func(cmd *cobra.Command) *Plan {
		words := &Plan{Verb: cmd.Name()}
		if cmd.Args == nil {
			cmd.Args = noArguments
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				words.Target = args[0]
			}
			return run(cmd.Context(), *words)
		}
		PlansFlag(cmd.Flags(), &words.Path)
		top.AddCommand(cmd)
		return words
	}
	add(&cobra.Command{Use: "check", Short: "Check the files of plans",
		Long: "Read the files of plans, and say what is wrong with them. weir asks no daemon and changes nothing. The exit code is 2 if\na file has a mistake."})
	add(&cobra.Command{Use: "list", Short: "List plans and assignments",
		Long: "List the plans with their limits, and which targets have which plan. The limits of a plan include those of the plan that\nit extends. Of the assignments that match a target, the first counts."})
	show := &cobra.Command{Use: "show TARGET", Short: "Show the plan of a target",
		Long: "Show which plan a running target has, which line says so, and its limits beside those in force.", Args: OneTarget,
		Example: "  weir plan show docker:web"}
	diff := &cobra.Command{Use: "diff", Short: "Show where limits differ from the plans",
		Long: "Show each running target that has a plan, and which of its limits differ from the plan. Nothing changes."}
	apply := &cobra.Command{Use: "apply", Short: "Put the plans into force",
		Long: "Set the limits of each running target that has a plan. What is in force already is not written again. A plan is the\n" +
			"whole of a target's limits: weir removes other limits of a target that has a plan.\n\n" +
			"If a target has no plan any more, weir removes the limits that weir plan apply has set, unless somebody has changed\n" +
			"them since. Limits of all other targets stay as they are; weir lists them.\n\n" +
			"A container loses its limits when it restarts. Run weir plan apply again then, or let weird run keep plans in force. If\n" +
			"one target cannot be limited, weir goes on with the others, and exits with 1 at the end."}
	show.ValidArgsFunction = complete
	add(show)
	add(diff)
	words := add(apply)
	apply.Flags().BoolVar(&words.DryRun, "dry-run", false, "print each file and line that would be written, and change nothing")
	for _, cmd := range []*cobra.Command{show, diff, apply} {
		more(cmd)
	}
	return top
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("plan %s: %q: it takes no argument", cmd.Name(), args[0])
	}
	return nil
}
