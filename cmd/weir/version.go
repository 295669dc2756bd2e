package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/ui/cli"
)

// version is set by the Makefile from the change log.
var version = ""

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArguments,
		RunE:  func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	v := cli.Version(version)
	if a.out.JSON {
		return a.out.Document(api.VersionOf(v))
	}
	a.out.Print("weir %s", v)
	return nil
}
