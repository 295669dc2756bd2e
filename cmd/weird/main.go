// Command weird is weir's daemon. It keeps plans in force, serves metrics, shows weir top, and
// answers whether it lives. weir itself needs no daemon: the daemon is the place for what is too
// heavy to be linked into weir.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/agent/health"
	"github.com/weir-io/weir/internal/agent/metrics"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/heavy"
	"github.com/weir-io/weir/internal/self"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

// version is set by the Makefile from the change log.
var version = ""

func main() { os.Exit(run()) }

func run() int {
	out := &cli.Out{Program: "weird", Data: os.Stdout, Messages: os.Stderr}
	// weir's pacer and other helpers are started as this program.
	is, err := self.Main(context.Background(), os.Args[1:], self.Streams{In: os.Stdin, Out: os.Stdout, Say: out.Say}, heavy.Roles(cli.Version(version)))
	if !is {
		root := newRoot(out)
		cli.CheckCobras(root)
		completes(root)
		err = cli.Execute(context.Background(), root, os.Args[1:])
	}
	err = errors.Join(err, out.Flush(), out.Err())
	if err != nil {
		out.Fail(text.Error(err))
	}
	return cli.ExitCode(err)
}

func newRoot(out *cli.Out) *cobra.Command {
	var showVersion bool
	s := metricsServer{}
	root := &cobra.Command{
		Use:   "weird",
		Short: "weir's daemon",
		Long: "weird is weir's daemon. weird run keeps plans in force. weird metrics serves limits and I/O to Prometheus and, as a\n" +
			"page, to browsers, and records history. weird top and weird history show them; weir top and weir history start these two. To set and show limits,\n" +
			"weir needs no daemon. weird --listen ADDRESS is short for weird metrics --listen ADDRESS.\n\n" +
			"Exit codes: 0 done; 1 not done; 2 wrong usage; 3 not possible on this host.",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cli.NoSuchVerb,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if showVersion {
				return printVersion(out)
			}
			switch {
			case cmd.Flags().Changed("listen"):
			case s.history+s.config != "" || s.page || s.trace:
				return cli.Usagef("--history, --page, --page-trace and --web-config are flags of weird metrics; write weird metrics, or add --listen ADDRESS")
			default:
				return cmd.Help()
			}
			return s.serve(cmd.Context(), out)
		},
	}
	root.Flags().BoolVar(&showVersion, "version", false, "print the version")
	root.Flags().StringVar(&s.listen, "listen", "", "serve metrics at this `ADDRESS`, such as "+metrics.Address)
	s.flags(root)
	root.SetFlagErrorFunc(cli.FlagError)
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { out.Text(cli.Help(cmd, cli.HelpWidth(os.Stdout))) })
	root.AddCommand(newVersion(out), newHealth(out), newMetrics(out), newTop(out), newHistory(out), newRun(out), newStatus(out), newLog(out), newInstall(out), newUninstall(out), newEnter())
	return root
}

func newVersion(out *cli.Out) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cli.NoArguments,
		RunE:  func(*cobra.Command, []string) error { return printVersion(out) },
	}
	cmd.Flags().BoolVar(&out.JSON, "json", false, "print one JSON document (docs/json.md)")
	return cmd
}

func printVersion(out *cli.Out) error {
	v := cli.Version(version)
	if out.JSON {
		return out.Document(api.VersionOf(v))
	}
	out.Print("weird %s", v)
	return nil
}

func newHealth(out *cli.Out) *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Answer health checks at a socket, and do nothing else",
		Long: "Answer GET " + health.Route + " over HTTP at a unix socket, until SIGTERM or Ctrl-C. weird run answers it too, so weird\n" +
			"health need not run beside it. Only root and the user that started weird can connect. weird replaces a socket that a killed weird left, and removes its own when it ends.",
		Example: "  weird health\n  curl --unix-socket " + health.Socket + " http://localhost" + health.Route,
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
			defer stop()
			l, err := health.Listen(socket)
			if err != nil {
				return err
			}
			out.Say("answering at %s", socket)
			return health.Serve(ctx, l, cli.Version(version), nil)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", health.Socket, "the `PATH` of the socket")
	return cmd
}
