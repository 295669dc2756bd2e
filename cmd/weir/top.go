package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/self"
)

// newTop makes the verb that weird has: what it shows it with is too heavy for weir.
func newTop(*app) *cobra.Command {
	return &cobra.Command{
		Use:   "top [flags]",
		Short: "Show what groups read and write, beside their limits",
		Long: "Show each cgroup that has a limit or does I/O: its rates, the percentage of its nearest limit, how long its tasks wait\n" +
			"for I/O, its dirty pages, and what of the limit is expected to be held.\n\n" +
			"weir top runs weird top, which has the flags: weir top --help lists them. It needs no running weird.",
		Example:            "  weir top\n  weir top --once --sort write\n  weir top --json",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return self.BecomeWeird(os.Getenv("PATH"), os.Environ(), append([]string{"top"}, args...)...)
		},
	}
}
