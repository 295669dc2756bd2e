package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/demo"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/scratch"
)

// demoDiskBytes is the size of the demo's disk, a sparse file; it never contains that much at
// once.
const demoDiskBytes = 512 << 20

func newDemo(a *app) *cobra.Command {
	var write, dir string
	window := 4 * time.Second
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show what a limit does, on a scratch disk",
		Long: "Write to a scratch disk without and with a limit, direct and buffered, and print each limit and the measured rates.\n" +
			"Where the kernel does not hold buffered writes, the last row shows how weir's pacer holds them, as it does by default\n" +
			"in weir run.\n\n" +
			"The disk is a loop device on an unnamed file, mounted where only the demo sees it, so nothing remains however the demo\n" +
			"ends. (After SIGKILL an empty cgroup stays until the next weir run, set, show, clear, why, prove or demo.) The file\n" +
			"takes up to 512 MiB, which the demo overwrites again and again. Without a limit it writes as much as the disk can take\n" +
			"in that time, which may be gigabytes.\n\n" +
			"A row says \"held\" if the disk did no more than the limit allows, and \"cannot tell\" if the disk did less than half of\n" +
			"that. The demo exits with 0 once it has measured, whatever the result. Scripts should use weir prove.",
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rate, err := limit.ParseBytes(write)
			if err != nil {
				return err
			}
			if _, ok := rate.Number(); !ok || window < time.Second {
				return cli.Usagef("demo: --write needs a number, and --for at least 1s")
			}
			return a.demo(cmd.Context(), rate, dir, window)
		},
	}
	cmd.Flags().StringVar(&write, "write", "10MB/s", "limit writes to this `RATE`")
	cmd.Flags().StringVar(&dir, "dir", "/var/tmp", "`DIR` for the scratch disk's file, which takes at most 512 MiB")
	cmd.Flags().DurationVar(&window, "for", window, "`TIME` of each measurement")
	return cmd
}

func (a *app) demo(ctx context.Context, rate limit.Rate, dir string, window time.Duration) error {
	if os.Geteuid() != 0 {
		return errors.New("demo: permission denied (it makes a loop device, a mount and cgroups; run weir as root)")
	}
	hierarchy, err := a.io()
	if err != nil {
		return err
	}
	if !scratch.Inside() {
		status, err := scratch.Reenter()
		if err != nil || status == 0 {
			return err
		}
		return &cli.StatusError{Status: status}
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	err = a.runDemo(ctx, hierarchy.Version.String(), rate, dir, window)
	var signaled *launch.SignalError
	if !errors.As(context.Cause(ctx), &signaled) {
		return err
	}
	if err := besidesSignal(err); err != nil { // something may be left
		return err
	}
	a.out.Say("%s; nothing is left", signaled.Signal)
	return &cli.StatusError{Status: cli.ExitCode(signaled)}
}

// besidesSignal removes the signal from a joined error.
func besidesSignal(err error) error {
	var signaled *launch.SignalError
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, each := range joined.Unwrap() {
			rest = append(rest, besidesSignal(each))
		}
		return errors.Join(rest...)
	}
	if errors.As(err, &signaled) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (a *app) runDemo(ctx context.Context, version string, rate limit.Rate, dir string, window time.Duration) error {
	disk, err := scratch.New(ctx, dir, demoDiskBytes)
	if err != nil {
		return err
	}
	a.out.Say("scratch disk %s (%s), ext4; cgroup %s; %s per measurement", disk.Node, disk.Device, version, window)
	progress := cli.NewProgress(os.Stderr)
	paced, err := a.demoPaced(ctx, disk, rate)
	if err != nil {
		return errors.Join(err, disk.Close())
	}
	d := demo.Demo{
		Host: a.launchHost(), Paced: paced,
		Disk: disk, Limit: rate, For: window, Progress: progress.Show,
	}
	var rows []demo.Row
	err = d.Run(ctx, func(r demo.Row) error {
		rows = append(rows, r)
		return nil
	})
	progress.Clear()
	if err := errors.Join(err, disk.Close()); err != nil {
		return err
	}
	if a.out.JSON {
		return a.out.Document(demoDocument{cli.SchemaOf("demo"), rows})
	}
	a.out.Print("%s", demoTable(rows))
	return nil
}

// demoPaced reports whether weir run has its pacer hold buffered writes to the disk.
func (a *app) demoPaced(ctx context.Context, disk *scratch.Disk, rate limit.Rate) (bool, error) {
	device, err := blkdev.New(a.root).Device(ctx, disk.Device)
	if err != nil {
		return false, err
	}
	group, _, err := a.launchHost().Plan(launch.Options{Command: "demo"})
	if err != nil {
		return false, err
	}
	decided, err := a.deciding().Decide(group, true, []place.Placed{{Device: device, Limit: limit.Limit{WBPS: rate}}}, limit.HoldAuto)
	return decided.Paced != nil, err
}

// demoDocument is weir demo's JSON (docs/json.md).
type demoDocument struct {
	cli.Schema
	Rows []demo.Row `json:"rows"`
}

func demoTable(rows []demo.Row) string {
	table := [][]string{{"WRITES", "LIMIT", "WRITER", "DISK", ""}}
	for _, r := range rows {
		verdict := ""
		switch {
		case r.Limit.IsUnlimited():
		case r.Held:
			verdict = "held"
		case r.CannotTell:
			verdict = "cannot tell: " + r.Why
		default:
			verdict = "NOT HELD: " + r.Why
		}
		asked := r.Limit.Format(limit.WBPS)
		if r.Limit.IsUnlimited() {
			asked = "none"
		}
		writes := string(r.Path)
		if r.Hold == limit.HoldPacer {
			writes += ", weir's pacer"
		}
		table = append(table, []string{writes, asked, limit.FormatMeasured(r.Writer) + "/s", limit.FormatMeasured(r.Device) + "/s", verdict})
	}
	return cli.Table(table, 1, 2, 3)
}

// newLoad is the demo's writer. It is not for people.
func newLoad(a *app) *cobra.Command {
	return &cobra.Command{
		Use:    demo.LoadArg,
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := load.Parse(args)
			if err != nil {
				return err
			}
			return load.RunTo(cmd.Context(), job, os.Stdout)
		},
	}
}
