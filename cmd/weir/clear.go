package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/ui/cli"
)

func newClear(a *app) *cobra.Command {
	var limits cli.Limits
	var whole, dryRun bool
	cmd := &cobra.Command{
		Use:   "clear TARGET [--on PATH|DEVICE]...",
		Short: "Remove limits",
		Long: "Remove all limits of a target, or with --on only those on some devices. This includes limits that weir set --persist\n" +
			"saved, even if the unit, container or domain is not running. weir also removes the limits that Docker itself stores,\n" +
			"if Docker's API is 1.55 or later. It is no error if the target has no limits.",
		Example: "  weir clear pid:4711\n  weir clear cgroup:/batch --on /data",
		Args:    cli.OneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.clear(cmd.Context(), args[0], limits.Places(), whole, dryRun)
		},
	}
	limits.RegisterOn(cmd.Flags(), "`PATH|DEVICE` whose limits are removed (default: every device that has one)")
	cmd.Flags().BoolVar(&whole, "whole-cgroup", false, "clear the cgroup of a pid even if other processes share it")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print each file and line that would be written, and change nothing")
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

func (a *app) clear(ctx context.Context, spec string, on []string, whole, dryRun bool) error {
	manager, err := a.limits()
	if err != nil {
		return err
	}
	change, err := manager.PrepareClear(ctx, spec, on, whole)
	return a.change(ctx, "clear", change, err, dryRun)
}
