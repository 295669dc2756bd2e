package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/linux/enter"
	"github.com/weir-io/weir/internal/ui/cli"
)

func newEnter() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "enter COMMAND [ARGUMENT...]",
		Short: "Run a command in the host's cgroup namespace, from within a container",
		Long: "Run COMMAND in the place of this process and in the cgroup namespace of process 1. A container that runs weir needs\n" +
			"it: the container's own namespace hides the paths of the cgroups of others. The container must see the host's\n" +
			"processes (hostPID: true in Kubernetes), and have CAP_SYS_ADMIN and CAP_SYS_PTRACE.",
		Example: "  weird enter weird run --nri /var/run/nri/nri.sock\n  weird enter weir show pod:default/web",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("enter: name a command, such as weird enter weir show")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return enter.Cgroups(1, args, os.Environ()) },
	}
	cmd.Flags().SetInterspersed(false) // what follows the command is the command's
	return cmd
}
