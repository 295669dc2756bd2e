package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/dirty"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/svg"
	"github.com/weir-io/weir/internal/ui/text"
)

// traceDirty watches dirty pages until the window is over or a signal comes.
func (a *app) traceDirty(ctx context.Context, args []string, window time.Duration, drawing string) error {
	if window < 100*time.Millisecond || window > traceForMost {
		return cli.Usagef("--for %s: write 100ms to %s", cli.FlagTime(window), cli.FlagTime(traceForMost))
	}
	var of *targets.Target
	var groups *cgroupfs.FS // not needed without a target
	if len(args) == 1 {
		t, err := a.target(ctx, args[0])
		if err != nil {
			return err
		}
		of, groups = &t, a.host.FS
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	progress := cli.NewProgress(os.Stderr)
	r, err := dirty.Look(ctx, a.root, groups, of, window, func(now dirty.Reading) {
		progress.Show(now.Host.String()+" dirty on the host", min(1, now.At.Seconds()/window.Seconds()))
	})
	progress.Clear()
	if err == nil {
		err = a.reportDirty(r, drawing)
	}
	var signaled *launch.SignalError
	if err == nil && errors.As(context.Cause(ctx), &signaled) {
		return &cli.StatusError{Status: cli.ExitCode(signaled)}
	}
	return err
}

// reportDirty prints what was seen, and draws it.
func (a *app) reportDirty(r dirty.Report, drawing string) error {
	if a.out.JSON {
		if err := a.out.Document(api.DirtyOf(r)); err != nil {
			return err
		}
	} else {
		text.Dirty(&a.out, r)
	}
	if drawing == "" {
		return nil
	}
	return svg.Dirty(drawing, r)
}
