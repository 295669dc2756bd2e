package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/scratch"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/demo"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
)

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
			return a.demo(cmd.Context(), demo.Options{Limit: rate, Dir: dir, For: window, Stderr: os.Stderr})
		},
	}
	cmd.Flags().StringVar(&write, "write", "10MB/s", "limit writes to this `RATE`")
	cmd.Flags().StringVar(&dir, "dir", "/var/tmp", "`DIR` for the scratch disk's file, which takes at most 512 MiB")
	cmd.Flags().DurationVar(&window, "for", window, "`TIME` of each measurement")
	return cmd
}

func (a *app) demo(ctx context.Context, o demo.Options) error {
	if os.Geteuid() != 0 {
		return errors.New("demo: permission denied (it makes a loop device, a mount and cgroups; run weir as root)")
	}
	hierarchy, err := a.io()
	if err != nil {
		return err
	}
	if !scratch.Inside() {
		return reenter()
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	err = a.runDemo(ctx, hierarchy.Version, o)
	var signaled *launch.SignalError
	if !errors.As(context.Cause(ctx), &signaled) {
		return err
	}
	if err := launch.BesidesSignal(err); err != nil { // something may be left
		return err
	}
	a.out.Say("%s: ended early; nothing is left behind", signaled.Signal)
	return &cli.StatusError{Status: cli.ExitCode(signaled)}
}

func (a *app) runDemo(ctx context.Context, version cgroupfs.Version, o demo.Options) error {
	progress := cli.NewProgress(os.Stderr)
	o.Progress = progress.Show
	d, err := demo.Prepare(ctx, a.host, o)
	if err != nil {
		return err
	}
	a.out.Say("scratch disk %s (%s), ext4; cgroup %s; %s per measurement", d.Disk.Node, d.Disk.Device, version, o.For)
	rows, err := d.Run(ctx)
	progress.Clear()
	if err != nil {
		return err
	}
	if a.out.JSON {
		return a.out.Document(api.DemoOf(rows))
	}
	a.out.Text(text.Demo(rows) + "\n")
	return nil
}

// reenter runs this command again beside a scratch disk, and ends as that does.
func reenter() error {
	status, err := scratch.Reenter()
	if err != nil || status == 0 {
		return err
	}
	return &cli.StatusError{Status: status}
}
