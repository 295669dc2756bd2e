package cli

import "github.com/spf13/cobra"

// CheckCobras adds cobra's own verbs, help and completion, and has them refuse arguments that they
// do not know.
func CheckCobras(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = oneVerb
		case "completion":
			c.Args, c.RunE = NoArguments, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range c.Commands() {
				shell.Args = NoArguments
			}
		}
	}
}

// oneVerb is the argument check of help.
func oneVerb(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) == 0 {
		return err
	}
	if found == cmd.Root() {
		return NoSuchVerb(found, rest)
	}
	return NoArguments(found, rest)
}

// NoArguments is the Args of a verb that takes none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s: %q: too many arguments; see %s --help", cmd.Name(), args[0], cmd.CommandPath())
	}
	return nil
}

// OneTarget is the Args of a verb that takes one target.
func OneTarget(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return Usagef("%s: one target is needed, such as unit:nginx, docker:web, pid:4711 or cgroup:/batch; %d given", cmd.Name(), len(args))
	}
	return nil
}
