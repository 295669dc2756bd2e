package cli

import (
	"os"

	"github.com/spf13/cobra"
)

// TopVerb makes weir top, which weird has: what it shows it with is too heavy for weir. become runs
// weird in the place of this process, as self.BecomeWeird does.
func TopVerb(become func(path string, environ []string, args ...string) error) *cobra.Command {
	return &cobra.Command{
		Use:   "top [flags]",
		Short: "Show what groups read and write, beside their limits",
		Long: "Show each cgroup that has a limit or does I/O: its rates, the percentage of its nearest limit, how long its tasks wait\n" +
			"for I/O, its dirty pages, and what of the limit is expected to be held.\n\n" +
			"weir top runs weird top, which has the flags: weir top --help lists them. It needs no running weird.",
		Example:            "  weir top\n  weir top --once --sort write\n  weir top --json",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return become(os.Getenv("PATH"), os.Environ(), append([]string{"top"}, args...)...)
		},
	}
}
