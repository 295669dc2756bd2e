package main

import (
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
)

func newRun(a *app) *cobra.Command {
	var limits cli.Limits
	var memory, name string
	var how limit.Hold
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "run [LIMITS] [--on PATH|DEVICE]... [--memory SIZE] [--name NAME] -- COMMAND...",
		Short: "Run a command under a limit",
		Long: "Run a command in a cgroup of its own, with the limits in force before it starts. weir passes signals and the terminal\n" +
			"on to the command, and exits with its status: 127 if there is no such command, 126 if it cannot be executed, 128+n if\n" +
			"signal n ended it. weir removes the cgroup when its last process has exited. On cgroup v2 it first waits until the\n" +
			"kernel has written back what the command left in memory.\n\n" +
			"Where the kernel does not hold buffered writes, as on cgroup v1, weir's pacer holds them (--hold auto). It pauses the\n" +
			"command's processes for short moments, so that together they write no more than --write allows. On cgroup v2 it pauses\n" +
			"them only for writes to files that the kernel charges to other cgroups, and it needs BPF to see those. A pause can cut\n" +
			"a read short, as a signal can. --hold kernel turns the pacer off.\n\n" +
			"weir passes a signal on to the command if it is sent to weir alone. Ctrl-C reaches the command directly, because the\n" +
			"terminal sends it to the whole process group, so weir does not send it again. Without a terminal, weir passes on every\n" +
			"signal that it gets. If a signal arrives before the command has started, weir cleans up and exits with 128+n.\n\n" +
			"If weir itself fails before the command starts, it exits with 1, 2 or 3 and a message that begins with \"weir:\".",
		Example: "  weir run --write 10MB/s --on /data -- ./import.sh\n" +
			"  weir run --read 50MiB/s --read-iops 500 -- tar cf /backup/home.tar /home",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("run: no command is given; write weir run --write 10MB/s -- COMMAND")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o := launch.Options{Name: name, Command: strings.Join(args, " ")}
			return a.run(cmd, args, limits, memory, how, o, dryRun)
		},
	}
	cmd.Flags().SetInterspersed(false)
	limits.Register(cmd.Flags())
	cmd.Flags().StringVar(&memory, "memory", "", "limit the command's memory, including its page cache, to `SIZE`, such as 512MiB")
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the cgroup (default: chosen by weir)")
	cli.HoldFlag(cmd.Flags(), &how, limit.HoldAuto)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print each file and line that would be written, and change nothing")
	a.cgroupFlag(cmd)
	return cmd
}

// memoryMin: a smaller limit is a mistake, because no program can start with it. (In a systemd
// scope there must also be room for a weir, which waits there.)
const memoryMin = 1_000_000

func (a *app) run(cmd *cobra.Command, args []string, limits cli.Limits, memory string, how limit.Hold, o launch.Options, dryRun bool) error {
	ctx := cmd.Context()
	onLimits, err := limits.Resolve()
	if err != nil {
		return err
	}
	if memory != "" {
		if o.MemoryMax, err = limit.ParseSize(memory); err != nil {
			return cli.Usagef("--memory: %v", err)
		}
		if o.MemoryMax < memoryMin {
			return cli.Usagef("--memory %s: a command needs at least %d kB", memory, memoryMin/1000)
		}
	}
	if err := launch.CheckName(o.Name); err != nil {
		return cli.Usagef("--name %v", err)
	}
	if o.Version, err = a.want(); err != nil {
		return err
	}
	if err := launch.Find(args[0]); err != nil {
		if isUnit(args[0]) {
			return cli.Usagef("run: %q is no command; write a rate as one word, such as --write 10%s", args[0], args[0])
		}
		return err
	}
	if len(onLimits) == 0 && memory == "" {
		a.out.Say("no limit is named, so the command runs without one; add --read, --write, --read-iops or --write-iops")
	}
	if _, err := a.io(); err != nil {
		return err
	}
	places, err := a.place(ctx, onLimits, []int{0})
	if err != nil {
		return err
	}
	o.Changes, o.Linger = place.Changes(places), true
	host := a.launchHost()
	group, steps, err := host.Plan(o)
	if err != nil {
		return err
	}
	decided, err := a.deciding().Decide(group, true, places, how)
	if err != nil {
		return err
	}
	if dryRun {
		if steps, err = withPace(host, group, decided, steps); err != nil {
			return err
		}
		a.explain(decided)
		return a.dryRun("run", steps)
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	o.Then = func(room *launch.Room) (err error) {
		decided, err = a.pace(host, room, decided)
		return err
	}
	room, err := host.Prepare(ctx, o)
	if err != nil {
		return err
	}
	decided = a.holdEscapes(host, room, decided)
	a.explain(decided)
	if decided.Paced != nil && readsShort(args) {
		a.out.Say("note: the pacer's pauses cut reads of /dev/zero and /dev/urandom short, so dd writes less than you asked for; add iflag=fullblock")
	}
	a.sayDrain(room.IO, decided)
	watcher := a.watchEscapes(room.IO, decided)
	defer closeWatcher(watcher)
	result, err := host.Run(ctx, room, launch.Command{Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals,
		Rules: tallied(decided), Watcher: watcher})
	if decided.Escapes != nil {
		result.Stops = a.stopsOf(room.IO)
	}
	left, closing := room.Close()
	switch left {
	case launch.LeftProcesses:
		a.out.Say("processes of the command are still running in %s; weir removes the group when they have exited", room.IO.Path())
	case launch.LeftQueued:
		a.out.Say("some of its writes still wait in the kernel for the limit: weir keeps the group and its limit until they are written, in about %s", cli.Duration(result.Queued))
	}
	if left != launch.LeftNothing {
		closing = errors.Join(closing, launch.SweepLater())
	}
	if result.Starved && o.MemoryMax > 0 {
		a.out.Say("killed: out of memory (limit %s)", limit.FormatSize(o.MemoryMax))
	}
	if err == nil {
		err = a.reportRun(room, decided, args[0], result)
		if left == launch.LeftDirty && decided.Binds() && result.Dirty != nil {
			a.out.Say("%s of its writes are still in memory: weir keeps the group and its limit until they are written", limit.FormatMeasured(float64(*result.Dirty)))
		}
	}
	if err = errors.Join(err, closing); !result.Ended {
		return err
	}
	// Once the command has run, its status is what weir ends with.
	if err != nil {
		a.out.Fail(err)
	}
	if result.Status != 0 {
		return &cli.StatusError{Status: result.Status}
	}
	return nil
}

// isUnit reports whether a word is the unit of a rate, written as a separate word.
func isUnit(word string) bool {
	_, err := limit.ParseBytes("10" + word)
	return err == nil && !strings.ContainsAny(word[:1], "0123456789")
}
