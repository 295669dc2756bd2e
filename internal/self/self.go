// Package self has the roles in which weir starts itself: the helpers that need a process of their
// own. A program that uses weir's packages calls Main first, because those helpers are started as
// /proc/self/exe.
package self

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/mend"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/base/background"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/latency"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/trace"
	"github.com/weir-io/weir/internal/plans"
	"github.com/weir-io/weir/internal/state"
)

// Streams are what a role reads and writes.
type Streams struct {
	In, Out *os.File
	Say     func(format string, args ...any) // a line for people
}

// A role runs with the arguments behind its name.
type role struct {
	// alone roles outlive the weir that starts them, or belong to no caller: they take no
	// arguments, and close what they have inherited.
	alone bool
	run   func(ctx context.Context, args []string, s Streams) error // nil: the role is a heavy one
}

// Heavy are the roles that load BPF programs or read YAML. Package heavy has them; a program that
// does not link it hands them to weird: see InWeird.
type Heavy struct {
	Run func(ctx context.Context, name string, args []string, s Streams) error
	// Program finds the program that has them; nil: this one.
	Program func() (path string, err error)
}

// roleOf finds a role by its name.
func roleOf(name string) (r role, ok bool) {
	switch name {
	case launch.KeeperArg:
		return role{true, keep}, true
	case launch.WitnessArg:
		return role{true, witness}, true
	case launch.SweepArg:
		return role{true, sweep}, true
	case pacer.PacerArg, pacer.EscapesArg, pacer.PartialArg:
		return role{true, nil}, true
	case pacer.GuardArg:
		return role{true, guard}, true
	case load.Arg:
		return role{false, runLoad}, true
	case latency.WriterArg:
		return role{false, runCopy}, true
	case mend.Arg, plans.HelperArg, trace.HelperArg, inode.HelperArg, escape.HelperArg, kernel.HelperArg:
		return role{false, nil}, true
	}
	return role{}, false
}

// Main runs the role that a program's arguments name, without the program's own name. is is false
// if they name none. It returns when the role has ended.
func Main(ctx context.Context, args []string, s Streams, heavy Heavy) (is bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	name := args[0]
	r, is := roleOf(name)
	if r.run == nil {
		r.run = func(ctx context.Context, args []string, s Streams) error { return heavy.Run(ctx, name, args, s) }
	}
	switch {
	case !is:
		return false, nil
	case !r.alone:
		return true, r.run(ctx, args[1:], s)
	case len(args) > 1:
		return true, fault.Misusef("%s: %q: too many arguments", name, args[1])
	}
	_ = background.Shed() // without /proc the role does nothing: what fails says so
	return true, r.run(ctx, nil, s)
}

func keep(_ context.Context, _ []string, s Streams) error {
	launch.Keep(s.In)
	return nil
}

func witness(_ context.Context, _ []string, s Streams) error {
	launch.Witness(s.In, s.Out)
	return nil
}

// sweepEvery is how often a background sweep looks whether a group is empty.
const sweepEvery = 250 * time.Millisecond

// sweep is what weir run leaves behind for a group whose processes outlive the command.
func sweep(ctx context.Context, _ []string, s Streams) error {
	h, err := host.Open(host.Options{Root: "/"})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }() // else the next weir does what is left
	if err := h.Sweep(); err != nil {
		s.Say("clean up after a killed weir: %v", err)
	}
	return launch.SweepUntilEmpty(ctx, h.State, h.FS, sweepEvery)
}

// Pace runs the pacer.
func Pace(ctx context.Context, programs pacer.Programs) error {
	fs, err := cgroupfs.Open("/")
	if err != nil {
		return err
	}
	defer fs.Close()
	return pacer.Serve(ctx, state.At("/"), fs, programs)
}

func guard(_ context.Context, _ []string, s Streams) error {
	return pacer.Guard(s.In, pacer.WatchOf(state.At("/")))
}

// runLoad makes I/O of a known kind, and counts it.
func runLoad(ctx context.Context, args []string, s Streams) error {
	job, err := load.Parse(args)
	if err != nil {
		return err
	}
	return load.RunTo(ctx, job, s.Out)
}

// logFD is where the writer of a copy gets the log of its writes.
const logFD = 3

// runCopy is the writer of an experiment of package latency.
func runCopy(_ context.Context, args []string, _ Streams) error {
	c, err := load.ParseCopy(args)
	if err != nil {
		return err
	}
	times, err := load.OpenLog(os.NewFile(logFD, "log of writes"))
	if err != nil {
		return err
	}
	return errors.Join(load.RunCopy(c, times), times.Close())
}
