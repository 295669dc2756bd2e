package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/agent/install"
	"github.com/weir-io/weir/internal/ui/cli"
)

func newInstall(out *cli.Out) *cobra.Command {
	return installVerb(out, &cobra.Command{
		Use:   "install",
		Short: "Have systemd run weird run, now and at each boot",
		Long: "Make the groups " + strings.Join(install.Groups(), " and ") + ", write the unit " + install.Unit + ", and have systemd enable and\n" +
			"start it. Each step is printed. What is done already is left alone, and if a step fails, those before it are undone.\n" +
			"Users in the group weir-read can ask weird, and those in weir can also have it load the plans again.\n\n" +
			"systemd starts weird once /etc/weir/plans.d has a plan, or to remove limits whose plan has gone.",
		Example: "  weird install --dry-run\n  weird install\n  usermod -aG weir-read alice",
	}, install.System.Install)
}

func newUninstall(out *cli.Out) *cobra.Command {
	return installVerb(out, &cobra.Command{
		Use:   "uninstall",
		Short: "End weird, and undo weird install",
		Long: "End weird, remove its unit, and remove the groups that weird install has made. The limits that weird has set stay in\n" +
			"force until their targets end, and so does the journal. To remove the limits first, remove the plans and wait until\n" +
			"weird status lists no target.",
		Example: "  weird uninstall --dry-run\n  weird uninstall",
	}, install.System.Uninstall)
}

func installVerb(out *cli.Out, cmd *cobra.Command, do func(install.System, context.Context, bool, func(string)) error) *cobra.Command {
	dry := false
	cmd.Args = cli.NoArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		if program, err = filepath.EvalSymlinks(program); err != nil {
			return err
		}
		return do(install.System{Root: "/", Program: program}, cmd.Context(), dry, func(step string) { out.Print("%s", step) })
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "print the steps, and change nothing")
	return cmd
}
