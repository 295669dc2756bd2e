package cli

import (
	"os"

	"github.com/spf13/cobra"
)

// A Become runs weird in the place of this process, as self.BecomeWeird does.
type Become func(path string, environ []string, args ...string) error

// TopVerb makes weir top, which weird has: what it shows it with is too heavy for weir.
func TopVerb(become Become) *cobra.Command {
	return become.verb(&cobra.Command{
		Use:   "top [flags]",
		Short: "Show what groups read and write, beside their limits",
		Long: "Show each cgroup that has a limit or does I/O. For each, weir shows its rates, the percentage of its nearest limit, how long its tasks wait\n" +
			"for I/O, its dirty pages, and which I/O the limit is expected to hold.\n\n" +
			"weir top starts weird top, with the same flags; weird-top(1) and weir top --help list them. No daemon has to run.",
		Example: "  weir top\n  weir top --once --sort write\n  weir top --json",
	})
}

// HistoryVerb makes weir history, which weird has too.
func HistoryVerb(become Become) *cobra.Command {
	return become.verb(&cobra.Command{
		Use:   "history TARGET [flags]",
		Short: "Show what a target read and wrote, beside its limits, in the past",
		Long: "Show what a target read and wrote, beside its limits, from what weird metrics --history has recorded.\n\n" +
			"weir history starts weird history, with the same flags; weird-history(1) and weir history --help list them.",
		Example: "  weir history docker:web --since 2h\n  weir history unit:db --since 03:00 --until 03:30 --svg db.svg",
	})
}

// AgentVerb makes weir agent, whose verbs are weird's.
func AgentVerb(become Become) *cobra.Command {
	return &cobra.Command{
		Use:   "agent VERB [flags]",
		Short: "Run weird, which keeps plans in force, and see what it does",
		Long: "Run weird, weir's daemon: weir agent VERB is weird VERB, with the same flags. weird(1) and weir agent --help list the\n" +
			"verbs.",
		Example:            "  weir agent status docker:web\n  weir agent log --since 2h\n  weir agent run",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return become(os.Getenv("PATH"), os.Environ(), args...)
		},
	}
}

// verb has weird do what a verb is called after.
func (b Become) verb(cmd *cobra.Command) *cobra.Command {
	cmd.DisableFlagParsing = true
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return b(os.Getenv("PATH"), os.Environ(), append([]string{cmd.Name()}, args...)...)
	}
	return cmd
}
