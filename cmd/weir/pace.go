package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/pacer"
	"github.com/weir-io/weir/internal/state"
)

// newPacer is the verb of the pacer process, newGuard that of its guards. They are not for
// people.
func newPacer(a *app) *cobra.Command {
	return &cobra.Command{
		Use: pacer.PacerArg, Hidden: true, Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fs, err := cgroupfs.Open("/")
			if err != nil {
				return err
			}
			defer fs.Close()
			return pacer.Serve(cmd.Context(), state.At("/"), fs)
		},
	}
}

func newGuard() *cobra.Command {
	return &cobra.Command{
		Use: pacer.GuardArg, Hidden: true, Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error { return pacer.Guard(os.Stdin, pacer.WatchOf(state.At("/"))) },
	}
}
