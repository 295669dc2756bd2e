package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/prove"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/svg"
)

const (
	proveFor     = 3 * time.Second
	proveForMost = 10 * time.Minute
)

// proveFlags are the flags of weir prove.
type proveFlags struct {
	limits    cli.Limits
	on        []limit.Asked // the limits, resolved
	places    []string      // --on alone, for a target
	window    time.Duration
	asked     bool // --for was given
	paths     string
	wanted    []load.Path // --paths, parsed
	observe   time.Duration
	neighbour bool
	svg, dir  string
	hold      limit.Hold
	all       bool // rows
}

func newProve(a *app) *cobra.Command {
	f := &proveFlags{window: proveFor}
	cmd := &cobra.Command{
		Use:   "prove [TARGET] [LIMITS] [--on DIR]",
		Short: "Measure whether a limit holds",
		Long: "Read and write in each way under a limit, and count the bytes at the writer, at the cgroup and at the device. Then\n" +
			"say whether the limit held.\n\n" +
			"Without a target, weir measures in a new cgroup, under the limits that you name. It uses a scratch disk, or the\n" +
			"directory --on DIR. There weir holds buffered writes as weir run would (--hold auto).\n\n" +
			"With a target, weir measures inside the target's cgroup, under its current limits, in an unnamed file on each limited\n" +
			"device that the target has mounted. The target's own I/O shares the limit and is counted too. With --observe, weir\n" +
			"makes no load and measures only the target's own I/O. weir leaves nothing behind. (After SIGKILL an empty cgroup stays\n" +
			"until the next weir command that looks at limits.)\n\n" +
			"If weir why knows the cause of a verdict, the report names that finding and the weir why command that explains it.\n\n" +
			"Exit codes: 0 every limit held (also if only the device was held and the writer ran ahead in memory); 1 something was\n" +
			"not held; 3 weir cannot tell, or has not tried one of the limits. Then the report says which limit, and how to try it.\n" +
			"With a target and --on, only the limits of those devices count.",
		Example: "  weir prove --write 10MB/s\n" +
			"  weir prove --read 50MiB/s --read-iops 500 --on /data\n" +
			"  weir prove cgroup:/batch --paths direct,buffered --svg batch.svg\n" +
			"  weir prove pid:4711 --observe 10s\n" +
			"  weir prove --write 10MB/s --neighbour",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return cli.Usagef("prove: name at most one target; %d are named", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.asked = cmd.Flags().Changed("for")
			f.all = f.all || cmd.Flags().Changed("paths")
			if a.root != "/" {
				return cli.Usagef("prove --root %s: it measures this host; leave out --root", a.root)
			}
			if err := f.check(args, cmd.Flags().Changed); err != nil {
				return err
			}
			return a.prove(cmd.Context(), args, f)
		},
	}
	f.register(cmd)
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

func (f *proveFlags) register(cmd *cobra.Command) {
	f.limits.Register(cmd.Flags())
	cmd.Flags().Lookup("on").Usage = "`PATH|DEVICE` to measure: a directory, or a device of the target (default: a scratch disk, or every limited device of the target)"
	cmd.Flags().DurationVar(&f.window, "for", f.window, "`TIME` to measure each kind of I/O, at least 1s")
	cmd.Flags().StringVar(&f.paths, "paths", "direct,sync,buffered,mapped", "the `KINDS` of I/O to try, of direct, sync, buffered, mapped and async (direct, 32 requests at once)")
	cmd.Flags().DurationVar(&f.observe, "observe", 0, "make no load, and measure the target's own I/O for this `TIME`")
	cmd.Flags().BoolVar(&f.all, "all", false, fmt.Sprintf("measure all rows, not only those that tell the most (%d, or one for each limit if half a minute is enough)", prove.RowsMost))
	cli.HoldFlag(cmd.Flags(), &f.hold, limit.HoldAuto)
	cmd.Flags().BoolVar(&f.neighbour, "neighbour", false, "measure how fast another process reads from the same disk, without and with the limit")
	cmd.Flags().StringVar(&f.svg, "svg", "", "draw the rates over time into `FILE`")
	cmd.Flags().StringVar(&f.dir, "dir", "/var/tmp", "`DIR` for the scratch disk's file, if there is no --on")
}

// check refuses what contradicts itself, before anything is done.
func (f *proveFlags) check(args []string, given func(flag string) bool) error {
	var err error
	observe, dir := given("observe"), given("dir")
	if f.wanted, err = parsePaths(f.paths); err != nil {
		return err
	}
	if f.window < time.Second || f.window > proveForMost {
		return cli.Usagef("--for %s: write 1s to %s", cli.FlagTime(f.window), cli.FlagTime(proveForMost))
	}
	if observe && (f.observe < time.Second || f.observe > proveForMost) {
		return cli.Usagef("--observe %s: write 1s to %s", cli.FlagTime(f.observe), cli.FlagTime(proveForMost))
	}
	if err := svg.Check("--svg", f.svg); err != nil {
		return err
	}
	if len(args) == 1 {
		return f.checkTarget(args[0], given)
	}
	if observe {
		return cli.Usagef("--observe: name a TARGET whose processes weir should watch, such as pid:4711")
	}
	if f.on, err = f.limits.Resolve(); err != nil {
		return err
	}
	if !slices.ContainsFunc(f.on, func(l limit.Asked) bool { return l.Limit.Bounds() }) {
		return cli.Usagef("prove: no limit is named; add a limit such as --write 10MB/s, or name a TARGET that has limits")
	}
	for _, l := range f.on {
		switch {
		case !l.Limit.Bounds():
			return cli.Usagef("prove --on %s: max means no limit; name a rate", l.On)
		case l.On != "" && dir:
			return cli.Usagef("--dir is for the scratch disk; leave out --dir or --on")
		case f.neighbour && len(f.on) > 1:
			return cli.Usagef("--neighbour: name one place; %d are given", len(f.on))
		}
	}
	return nil
}

func (f *proveFlags) checkTarget(target string, given func(flag string) bool) error {
	f.places = f.limits.Places()
	rates := []string{"read", "write", "read-iops", "write-iops", "device-read-bps", "device-write-bps", "device-read-iops", "device-write-iops"}
	switch {
	case slices.ContainsFunc(rates, given):
		return cli.Usagef("prove %s: weir measures a target under its current limits; to change them: weir set %s", target, cli.Quote(target))
	case given("hold"):
		return cli.Usagef("--hold: weir measures %s as it is held now; to change that: weir set %s --hold %s", target, cli.Quote(target), f.hold)
	case f.neighbour:
		return cli.Usagef("--neighbour measures in a new group and not in a target; leave out %s", target)
	case given("dir"):
		return cli.Usagef("--dir is for the scratch disk, and %s is measured on its own disks; write --on DIR", target)
	}
	return nil
}

func parsePaths(text string) ([]load.Path, error) {
	var paths []load.Path
	for _, word := range strings.Split(text, ",") {
		p := load.Path(strings.TrimSpace(word))
		if !slices.Contains(load.Paths, p) {
			return nil, cli.Usagef("--paths %q: write some of direct, sync, buffered, mapped, async", word)
		}
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return paths, nil
}
