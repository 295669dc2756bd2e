package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/top"
)

// completes has a shell complete the values of flags, if one asks.
func completes(root *cobra.Command) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], cobra.ShellCompRequestCmd) {
		cli.CompleteFlags(root, choices, takesFile)
	}
}

// choices are the values that a flag takes, where these can be listed.
func choices(flag string) (all []string) {
	if flag == "sort" {
		for _, c := range top.Columns() {
			all = append(all, string(c))
		}
	}
	return all
}

// takesFile reports whether the value of a flag is a file or a directory.
func takesFile(flag string) bool {
	return slices.Contains([]string{"api", "history", "journal", "nri", "plans", "root", "socket", "svg", "web-config"}, flag)
}
