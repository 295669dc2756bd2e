package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/systemd"
)

func newRun(a *app) *cobra.Command {
	var limits cli.Limits
	var memory, name string
	var how string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "run [LIMITS] [--on PATH|DEVICE]... [--memory SIZE] [--name NAME] -- COMMAND...",
		Short: "Run a command under a limit",
		Long: "Run a command in a cgroup of its own, with the limits in force before it starts. weir passes on signals, the terminal and the exit status\n" +
			"(127: no such command; 126: it cannot be executed; 128+n: signal n ended it), and removes the group when its last process is gone\n" +
			"and, on cgroup v2, what it has left in memory is written.\n\n" +
			"Where the kernel does not hold buffered writes (cgroup v1), weir's pacer does: it stops the command's processes for moments, so that they make no more\n" +
			"dirty than --write lets through (--hold auto). Some reads that it interrupts come back short, as after any signal; --hold kernel does without it.\n\n" +
			"A signal that is sent to weir alone goes to the command. One that is sent to weir's process group, as Ctrl-C is, reaches the command by\n" +
			"itself, and is not sent again where weir has a terminal; without one, all that weir gets is handed on.\n" +
			"A signal before the command has started ends weir with 128+n, and nothing is left.\n\n" +
			"Where weir itself fails before the command starts, it ends with 1, 2 or 3 and a message that begins with \"weir:\".",
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
	cmd.Flags().StringVar(&memory, "memory", "", "most memory of the command, page cache included: `SIZE` such as 512MiB")
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the group (default: made up)")
	holdFlag(cmd, &how, holdAuto)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print each file and line that would be written, and do nothing")
	a.cgroupFlag(cmd)
	return cmd
}

// memoryMin is what less than is a mistake: no program starts in it. (In a scope of
// systemd's it must hold a weir as well, which waits there.)
const memoryMin = 1_000_000

func (a *app) run(cmd *cobra.Command, args []string, limits cli.Limits, memory, how string, o launch.Options, dryRun bool) error {
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
	if err := checkHold(how); err != nil {
		return err
	}
	if err := launch.CheckName(o.Name); err != nil {
		return cli.Usagef("--name %v", err)
	}
	if o.Version, err = a.want(); err != nil {
		return err
	}
	if err := launch.Find(args[0]); err != nil {
		return err
	}
	if _, err := a.io(); err != nil {
		return err
	}
	places, err := a.place(ctx, onLimits, []int{0})
	if err != nil {
		return err
	}
	o.Changes, o.Linger = changes(places), true
	host := launch.Host{FS: a.fs, State: a.state, Holder: a.holder(), SystemdRuns: systemd.Running(a.root)}
	if dryRun {
		group, steps, err := host.Plan(o)
		if err != nil {
			return err
		}
		a.explainPlaces(group, places, false)
		return a.dryRun("run", steps)
	}
	ctx, signals := launch.Catch(ctx)
	defer signals.Stop()
	room, err := host.Prepare(ctx, o)
	if err != nil {
		return err
	}
	pace, err := a.pace(room, places, how)
	if err != nil && how == holdAuto { // nobody has asked for the pacer
		a.out.Say("warning: %v", err)
		err = nil
	}
	if err != nil {
		_, closing := room.Close()
		return errors.Join(err, closing)
	}
	a.explainPlaces(room.IO, places, pace)
	if pace && readsShort(args) {
		a.out.Say("note: the pacer's stops interrupt reads of /dev/zero and /dev/urandom, and dd then writes less than it was told to; add iflag=fullblock")
	}
	a.sayDrain(room.IO, places)
	bound := bindsWriteback(room.IO, places)
	result, err := host.Run(ctx, room, launch.Command{Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals})
	left, closing := room.Close()
	switch left {
	case launch.LeftProcesses:
		a.out.Say("processes of the command live on in %s; the group is removed when they are gone", room.IO.Path())
	case launch.LeftQueued:
		a.out.Say("what it wrote waits in the kernel for the limit: the group stays, and the limit with it, until it is written, in about %s", cli.Duration(result.Queued))
	}
	if left != launch.LeftNothing {
		closing = errors.Join(closing, launch.SweepLater())
	}
	if result.Starved && o.MemoryMax > 0 {
		a.out.Say("killed for want of memory (limit %s)", limit.FormatSize(o.MemoryMax))
	}
	if err == nil {
		err = a.reportRun(room, places, pace, result)
		if left == launch.LeftDirty && bound && result.Dirty != nil {
			a.out.Say("%s of what it wrote are in memory still: the group stays, and the limit with it, until they are written", limit.FormatMeasured(float64(*result.Dirty)))
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

// runDocument is weir run's JSON (docs/json.md).
type runDocument struct {
	cli.Schema
	Cgroup         string      `json:"cgroup"`
	Version        int         `json:"cgroup_version"`
	Status         int         `json:"status"`
	ElapsedSeconds float64     `json:"elapsed_seconds"`
	Hold           string      `json:"hold"`
	QueuedSeconds  float64     `json:"queued_seconds"`
	Dirty          *uint64     `json:"dirty_bytes"` // null: not known
	Devices        []runDevice `json:"devices"`
}

type runDevice struct {
	Device  string         `json:"device"`
	Number  blkdev.Number  `json:"number"`
	Chain   string         `json:"chain"`
	Limit   limit.Limit    `json:"limit"`
	Charged *cgroupfs.Stat `json:"charged"` // null: the kernel counted nothing for the device
}

func (a *app) reportRun(room *launch.Room, places []placed, paced bool, r launch.Result) error {
	doc := runDocument{Schema: cli.SchemaOf("run"), Cgroup: room.IO.Path(), Version: int(room.IO.Hierarchy().Version), Status: r.Status,
		ElapsedSeconds: r.Elapsed.Seconds(), QueuedSeconds: r.Queued.Seconds(), Hold: holdKernel, Dirty: r.Dirty, Devices: []runDevice{}}
	if paced {
		doc.Hold = holdPacer
		a.out.Say("made %s dirty in %s: %s/s", limit.FormatMeasured(float64(r.Written)), cli.Duration(r.Elapsed), limit.FormatMeasured(float64(r.Written)/max(r.Elapsed.Seconds(), 1e-6)))
	}
	for _, p := range places {
		d := runDevice{Device: p.device.Node, Number: p.device.Number, Chain: p.chain.String(), Limit: p.Limit}
		for _, s := range r.Stats {
			if s.Device == p.device.Number {
				d.Charged = &s
			}
		}
		doc.Devices = append(doc.Devices, d)
		if !paced || d.Charged != nil && d.Charged.WrittenBytes+d.Charged.ReadBytes > 0 { // else what was made dirty says it
			a.sayCharged(d, r)
		}
	}
	if a.out.JSON {
		return a.out.Document(doc)
	}
	return nil
}

// sayCharged says what the group did on a device, for the directions that had a limit.
func (a *app) sayCharged(d runDevice, r launch.Result) {
	var s cgroupfs.Stat
	if d.Charged != nil {
		s = *d.Charged
	}
	say := func(done string, bps, iops limit.Rate, bytes, ops uint64, bpsKey, iopsKey limit.Key) {
		if !bps.IsSet() && !iops.IsSet() {
			return
		}
		bounds := ""
		if bps.IsSet() {
			bounds += ", limit " + bps.Format(bpsKey)
		}
		if iops.IsSet() {
			bounds += ", limit " + iops.Format(iopsKey)
		}
		seconds, took := max(r.Elapsed.Seconds(), 1e-6), cli.Duration(r.Elapsed)
		if bpsKey == limit.WBPS && r.Queued > 0 {
			seconds += r.Queued.Seconds()
			took += " and " + cli.Duration(r.Queued) + " of waiting"
		}
		a.out.Say("%s: %s %s in %s: %s/s, %.0f ops/s%s", d.Device, done, limit.FormatMeasured(float64(bytes)), took,
			limit.FormatMeasured(float64(bytes)/seconds), float64(ops)/seconds, bounds)
	}
	say("read", d.Limit.RBPS, d.Limit.RIOPS, s.ReadBytes, s.Reads, limit.RBPS, limit.RIOPS)
	say("wrote", d.Limit.WBPS, d.Limit.WIOPS, s.WrittenBytes, s.Writes, limit.WBPS, limit.WIOPS)
}

// bindsWriteback reports whether limits bind what the kernel writes behind the command.
func bindsWriteback(g cgroupfs.Group, places []placed) bool {
	return slices.ContainsFunc(places, func(p placed) bool { return p.limitsWrites() && p.expect(g).Buffered })
}
