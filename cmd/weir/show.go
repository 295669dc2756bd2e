package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func newShow(a *app) *cobra.Command {
	window, again := time.Second, false
	cmd := &cobra.Command{
		Use:   "show [TARGET]",
		Short: "Show limits, and the I/O under them",
		Long: "Show a target's limits for each device, and what the target did under them in the last second. Without a target, show\n" +
			"every limited cgroup of this host, whoever set the limit. Each has the name of its unit or container, or its path.\n\n" +
			"For docker:NAME and podman:NAME, weir also shows the limits that Docker or Podman stores for the container and sets\n" +
			"when it starts.\n\n" +
			"With --watch, weir shows it again each second, until Ctrl-C, which ends weir with exit code 0. A longer --for takes\n" +
			"longer. On a terminal the new output takes the place of the old one. With --json, weir prints one document a line.",
		Example: "  weir show\n  weir show docker:web --watch",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("show: name at most one target; %d are named", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if window < 0 {
				return cli.Usagef("--for %s: a time cannot be negative", window)
			}
			show := func(ctx context.Context) error { return a.show(ctx, args, window) }
			if again {
				return a.out.Repeat(cmd.Context(), time.Second, show)
			}
			return show(cmd.Context())
		},
	}
	cmd.Flags().DurationVar(&window, "for", window, "measure for this `TIME`; 0: do not measure")
	cmd.Flags().BoolVarP(&again, "watch", "w", false, "show it again each second, until Ctrl-C")
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

func (a *app) show(ctx context.Context, args []string, window time.Duration) error {
	manager, err := a.limits()
	if err != nil {
		return err
	}
	var shown limiting.Shown
	if len(args) == 0 {
		shown, err = manager.ShowAll(ctx, window)
	} else {
		shown, err = manager.Show(ctx, args[0], window)
	}
	if err != nil {
		return err
	}
	if shown.Target != nil {
		shown.Groups[0].Space = space.Quotas{Host: a.host}.OfTarget(ctx, *shown.Target)
	}
	a.sayNotes(append(shown.Notes, planned.Mark(ctx, a.host, planned.ByHelper(a.host.Helpers), &shown)...))
	if a.out.JSON {
		return a.out.Document(api.ShowOf(shown))
	}
	text.Show(&a.out, shown)
	return nil
}
