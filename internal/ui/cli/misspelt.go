package cli

import (
	"context"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-io/weir/internal/base/near"
)

// FlagError turns pflag's errors into wrong use, in weir's own words. It is for
// cobra.Command.SetFlagErrorFunc.
func FlagError(cmd *cobra.Command, err error) error {
	message := err.Error()
	if name, unknown := strings.CutPrefix(message, "unknown flag: "); unknown {
		if typed := firstWord(os.Args[1:], cmd.Flags()); !cmd.HasParent() && typed != "" { // the flag is of a verb that there is not
			return NoSuchVerb(cmd, []string{typed})
		}
		return Usagef("%s: no such flag; %s", name, orHelp(cmd, near.Names(strings.TrimPrefix(name, "--"), flagsOf(cmd)), "--"))
	}
	if _, typed, unknown := strings.Cut(message, "unknown shorthand flag: "); unknown {
		typed = typed[strings.LastIndexByte(typed, ' ')+1:]
		var meant []string
		if word := strings.TrimPrefix(typed, "-"); len(word) > 1 { // -write for --write
			word, _, _ = strings.Cut(word, "=")
			meant = near.Names(word, flagsOf(cmd))
		}
		return Usagef("%s: no such flag; %s", typed, orHelp(cmd, meant, "--"))
	}
	if strings.HasPrefix(message, "unknown ") || strings.HasPrefix(message, "flag needs") {
		message += "; see " + cmd.CommandPath() + " --help"
	}
	message = regexp.MustCompile(goDuration).ReplaceAllString(message, "write 500ms, 5s or 1m, not")
	if rest, ok := strings.CutPrefix(message, "invalid argument "); ok {
		if i := strings.Index(rest, "\" flag: "); i >= 0 {
			name := rest[strings.LastIndex(rest[:i], "\"")+1 : i]
			message = name + ": " + rest[i+len("\" flag: "):]
		}
	}
	return Usagef("%s", message)
}

// goDuration is what package time says of text that is no duration. To compile it takes
// longer than all else that happens before main.
const goDuration = `time: (invalid|missing unit in|unknown unit "[^"]*" in) duration`

// firstWord is the first argument that is no flag and no flag's value; "" if a flag that
// there is not comes before it.
func firstWord(args []string, flags *pflag.FlagSet) string {
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if name == args[i] {
			return name
		}
		f := flags.Lookup(name)
		if len(name) == 1 {
			f = flags.ShorthandLookup(name)
		}
		if f == nil {
			return ""
		}
		if f.NoOptDefVal == "" && !joined {
			i++
		}
	}
	return ""
}

func flagsOf(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// orHelp says what may have been meant, or where to look.
func orHelp(cmd *cobra.Command, meant []string, before string) string {
	if len(meant) == 0 {
		return "see " + cmd.CommandPath() + " --help"
	}
	return "did you mean " + before + strings.Join(meant, ", "+before) + "?"
}

// otherWords are words that people use for a verb of weir.
func otherWords(verb string) []string {
	switch verb {
	case "clear":
		return []string{"unset", "unlimit", "reset", "remove", "rm", "delete"}
	case "create":
		return []string{"new", "add", "make"}
	case "delete":
		return []string{"rm", "remove", "destroy"}
	case "down":
		return []string{"umount", "unmount"}
	case "list":
		return []string{"ls", "show"}
	case "prove":
		return []string{"test", "verify", "measure", "bench"}
	case "run":
		return []string{"exec", "start"}
	case "set":
		return []string{"limit", "apply", "update"}
	case "show":
		return []string{"ls", "list", "status", "get"}
	case "up":
		return []string{"mount"}
	case "why":
		return []string{"explain", "check"}
	}
	return nil
}

// NoSuchVerb refuses what cobra found no verb for, and names the verbs close to it. It is the Args
// of a command that has only verbs below it.
func NoSuchVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names, meant []string
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() && c.Name() != "help" {
			continue
		}
		names = append(names, c.Name())
		for _, w := range otherWords(c.Name()) {
			if w == args[0] {
				meant = append(meant, c.Name())
			}
		}
	}
	if len(meant) == 0 {
		meant = near.Names(args[0], names)
	}
	for i := range meant {
		meant[i] = cmd.CommandPath() + " " + meant[i]
	}
	if other := verbElsewhere(cmd.CommandPath(), args[0]); other != "" {
		meant = append(meant, other)
	}
	return Usagef("%q: no such verb; %s", args[0], orHelp(cmd, meant, ""))
}

// Execute does what some arguments ask for. A verb that there is not is refused also where --help is
// behind it, of which cobra would describe the command before it.
func Execute(ctx context.Context, root *cobra.Command, args []string) error {
	cmd, rest, err := root.Find(args)
	if err == nil && cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !strings.HasPrefix(rest[0], cobra.ShellCompRequestCmd) {
		return NoSuchVerb(cmd, rest)
	}
	root.PersistentPreRunE = noEmptyFlags
	root.SetArgs(args)
	return root.ExecuteContext(ctx)
}

// verbElsewhere is the command of the other of weir and weird, if that one has the verb; empty: it has not.
func verbElsewhere(program, verb string) string {
	switch verb {
	case "health", "log", "metrics", "status":
		if program == "weir" {
			return "weird " + verb
		}
	case "clear", "demo", "import", "plan", "prove", "quota", "restore", "set", "show", "trace", "volume", "why":
		if program == "weird" {
			return "weir " + verb
		}
	}
	return ""
}
