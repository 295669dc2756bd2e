package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CompleteFlags completes the values of the flags of a verb and the verbs below it: those that
// choices lists for a flag's name, and files only where takesFile says so.
func CompleteFlags(cmd *cobra.Command, choices func(flag string) []string, takesFile func(flag string) bool) {
	unquote := func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) } // a shell shows it as it is
	cmd.PersistentFlags().VisitAll(unquote)
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		unquote(f)
		if f.Value.Type() == "bool" || takesFile(f.Name) {
			return
		}
		values, list := choices(f.Name), strings.Contains(f.DefValue, ",")
		_ = cmd.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			if list {
				return listed(typed, values), cobra.ShellCompDirectiveNoFileComp
			}
			return values, cobra.ShellCompDirectiveNoFileComp
		}) // what has one already keeps it
	})
	for _, c := range cmd.Commands() {
		CompleteFlags(c, choices, takesFile)
	}
}

// listed completes the last of values that stand in a list with commas, each once.
func listed(typed string, values []string) []string {
	before := typed[:strings.LastIndex(typed, ",")+1]
	there := strings.Split(before, ",")
	var list []string
	for _, v := range values {
		if !slices.Contains(there, v) {
			list = append(list, before+v)
		}
	}
	return list
}
