// Command weir sets, proves, explains and watches disk I/O limits. This package is
// wiring: one file for each verb, and no logic.
package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/base/stack"
	"github.com/weir-io/weir/internal/self"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

func main() {
	stack.Grow()
	os.Exit(run(self.InWeird(os.Environ())))
}

func run(heavy self.Heavy) int {
	a := &app{out: cli.Out{Data: os.Stdout, Messages: os.Stderr}, heavy: heavy}
	is, err := self.Main(context.Background(), os.Args[1:], self.Streams{In: os.Stdin, Out: os.Stdout, Say: a.out.Say}, heavy)
	if !is {
		err = cli.Execute(context.Background(), rootFor(a, os.Args[1:]), os.Args[1:])
		a.close()
	}
	unwritten := errors.Join(a.out.Flush(), a.out.Err())
	var status *cli.StatusError
	if err != nil && !errors.As(err, &status) {
		a.out.Fail(text.Error(err))
	}
	if unwritten != nil {
		a.out.Fail(unwritten)
	}
	if err == nil {
		err = unwritten
	}
	return cli.ExitCode(err)
}

// verbs makes each verb by its name.
func verbs() map[string]func(*app) *cobra.Command {
	return map[string]func(*app) *cobra.Command{
		"run": newRun, "set": newSet, "show": newShow, "clear": newClear, "why": newWhy, "trace": newTrace, "demo": newDemo, "prove": newProve,
		"volume": newVolume, "quota": newQuota, "restore": newRestore, "import": newImport, "plan": newPlan, "version": newVersion,
		"agent":   func(*app) *cobra.Command { return cli.AgentVerb(self.BecomeWeird) },
		"top":     func(*app) *cobra.Command { return cli.TopVerb(self.BecomeWeird) },
		"history": func(*app) *cobra.Command { return cli.HistoryVerb(self.BecomeWeird) },
	}
}

// rootFor builds as much of the tree of verbs as some arguments need: where the first one
// is a verb's name, that verb alone. To build them all takes a quarter of a millisecond,
// which is a twentieth of weir set.
func rootFor(a *app, args []string) *cobra.Command {
	if len(args) > 0 {
		if verb, is := verbs()[args[0]]; is {
			root := newEmptyRoot(a)
			root.CompletionOptions.DisableDefaultCmd = true
			root.SetHelpCommand(&cobra.Command{Use: "no-help", Hidden: true})
			root.AddCommand(verb(a))
			return root
		}
	}
	root := newRoot(a)
	cli.CheckCobras(root)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		cli.CompleteFlags(root, choices, takesFile)
	}
	return root
}

// newRoot builds the tree of verbs.
func newRoot(a *app) *cobra.Command {
	root := newEmptyRoot(a)
	for _, verb := range verbs() {
		root.AddCommand(verb(a))
	}
	return root
}

func newEmptyRoot(a *app) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:   "weir",
		Short: "Disk I/O limits that hold",
		Long: "weir limits the disk I/O of commands, processes, systemd units, containers, pods, virtual machines and cgroups, on\n" +
			"cgroup v1 and v2. It says in advance which reads and writes the limit will hold.\n\n" +
			"Exit codes: 0 done; 1 not done; 2 wrong usage; 3 not possible on this host. weir run exits with the status of its\n" +
			"command.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cli.NoSuchVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return a.printVersion()
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVar(&showVersion, "version", false, "print the version")
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { a.out.Text(cli.Help(cmd, cli.HelpWidth(os.Stdout))) })
	flags := root.PersistentFlags()
	flags.BoolVar(&a.out.JSON, "json", false, "print one JSON document (docs/json.md)")
	flags.BoolVarP(&a.out.Quiet, "quiet", "q", false, "print errors only, no other messages")
	flags.StringVar(&a.root, "root", "/", "read /proc and /sys below `DIR`")
	return root
}
