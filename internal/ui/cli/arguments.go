package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// CheckCobras adds cobra's own verbs, help and completion, in weir's words, and has them refuse
// arguments that they do not know.
func CheckCobras(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Use = "help [COMMAND]"
			c.Short, c.Long = "Describe a command", "Describe a command, as "+root.Name()+" COMMAND --help does."
			c.Args = oneVerb
		case "completion":
			c.Short = "Print a script that completes commands in a shell"
			c.Long = "Print a script with which a shell completes commands, flags and targets. make install puts those for bash, zsh and fish where these shells look for them."
			c.Args, c.RunE = NoSuchVerb, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range c.Commands() {
				shell.Short = "Print the script for " + shell.Name()
				shell.Long, shell.Example = shell.Short+". The first example is for this session, the second for all later ones.", inShell(shell.Name(), root.Name())
				shell.Args = NoArguments
			}
		}
	}
}

// inShell shows how a shell takes a program's script: for this session, and for later ones.
func inShell(shell, program string) string {
	prints := program + " completion " + shell
	switch shell {
	case "bash":
		return "  source <(" + prints + ")\n  " + prints + " >/etc/bash_completion.d/" + program
	case "zsh":
		return "  source <(" + prints + ")\n  " + prints + ` >"${fpath[1]}/_` + program + `"`
	case "fish":
		return "  " + prints + " | source\n  " + prints + " >~/.config/fish/completions/" + program + ".fish"
	}
	return "  " + prints + " | Out-String | Invoke-Expression\n  " + prints + " >>$PROFILE"
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
		return Usagef("%s: %q: too many arguments; see %s --help", verb(cmd), args[0], cmd.CommandPath())
	}
	return nil
}

// OneTarget is the Args of a verb that takes one target.
func OneTarget(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return Usagef("%s: one target is needed, such as unit:nginx, docker:web, pid:4711 or cgroup:/batch; %d given", verb(cmd), len(args))
	}
	if args[0] == "" {
		return Usagef("%s \"\": a target is needed, such as unit:nginx, docker:web, pid:4711 or cgroup:/batch", verb(cmd))
	}
	return nil
}

// verb is how a command is called after the program's name: "plan show".
func verb(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}
