package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// noEmptyFlags refuses flags with an empty value, such as --web-config "$FILE" of a script that has no FILE: a
// server without keys and users is not what was asked for. An empty --filter has all groups pass.
func noEmptyFlags(cmd *cobra.Command, _ []string) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" && f.Name != "filter" {
			name, _ := pflag.UnquoteUsage(f)
			err = Usagef("--%s: its %s is empty; name one, or leave the flag out", f.Name, name)
		}
	})
	return err
}
