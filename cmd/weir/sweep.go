package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/launch"
)

// sweepEvery is how often a background sweep looks whether a group is empty.
const sweepEvery = 250 * time.Millisecond

// newSweep is what weir run leaves behind for a group whose processes outlive the
// command. It is not for people.
func newSweep(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    launch.SweepArg,
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.open(); err != nil {
				return err
			}
			return launch.SweepUntilEmpty(cmd.Context(), a.host.State, a.host.FS, sweepEvery)
		},
	}
}
