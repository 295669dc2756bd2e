package main

import (
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cli"
)

// version is set by the Makefile from the change log.
var version = ""

// versionDocument is weir version's JSON (docs/json.md).
type versionDocument struct {
	cli.Schema
	Version string `json:"version"`
}

func newVersion(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE:  func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version
	}
	if a.out.JSON {
		return a.out.Document(versionDocument{cli.SchemaOf("version"), v})
	}
	a.out.Print("weir %s", v)
	return nil
}
