package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/target/unit"
)

func newSet(a *app) *cobra.Command {
	var limits cli.Limits
	var o setOptions
	cmd := &cobra.Command{
		Use:   "set TARGET LIMITS [--on PATH|DEVICE]...",
		Short: "Set limits on a running process, unit or container",
		Long: "Set limits on a target that is running. Only the rates that you name change; max removes a limit.\n\n" +
			"A target is one of unit:NAME (a systemd service; write the full name for a scope, slice, socket, mount or swap),\n" +
			"docker:NAME, podman:NAME, containerd:NAMESPACE/ID, pod:NAMESPACE/NAME or pod:UID, vm:NAME (a libvirt domain),\n" +
			"pid:NUMBER, or cgroup:/PATH. The kernel limits cgroups, not processes. If other processes share the cgroup of a pid,\n" +
			"weir names the cgroup and asks for --whole-cgroup.\n\n" +
			"Name a container by its name, its id, or the beginning of its id. To use another socket than the usual one, set\n" +
			"DOCKER_HOST=unix:///PATH, CONTAINER_HOST=unix:///PATH (Podman) or CONTAINERD_ADDRESS=/PATH. All containers of a pod\n" +
			"share the pod's limit, which needs cgroup v2. weir looks for the pod's runtime as crictl does:\n" +
			"CONTAINER_RUNTIME_ENDPOINT=unix:///PATH, then runtime-endpoint in /etc/crictl.yaml, then the usual sockets.\n\n" +
			"A container or a domain loses the limit when it restarts, unless you add --persist. With --persist, Docker saves the\n" +
			"limit if its API is 1.55 or later. Otherwise systemd sets it at each start of the container (cgroup v2, Docker's\n" +
			"systemd cgroup driver). Elsewhere weir saves it, and weir restore sets it again. libvirt saves the limit of a domain.\n\n" +
			"A unit keeps its limit over reloads and restarts until the next boot, and with --persist over boots too, until weir\n" +
			"clear. On cgroup v1 systemd stores no such limits, so a restart of the unit loses them. There --persist installs a\n" +
			"drop-in that runs weir at each start of the service. systemd stores all limits of one kind together, so --persist\n" +
			"saves that kind of limit on all devices of the unit.\n\n" +
			"Where the kernel does not hold buffered writes, as on cgroup v1, weir's pacer holds them (--hold auto). It pauses the\n" +
			"target's processes for short moments, so that together they write no more than --write allows. On cgroup v2 it pauses\n" +
			"them only for writes to files that the kernel charges to other cgroups, and it needs BPF to see those. --hold kernel\n" +
			"turns the pacer off, also for a target that it already paces. On cgroup v2 the pacer follows a unit through its restarts,\n" +
			"but not through a boot: repeat weir set then.",
		Example: "  weir set unit:nginx --read 10MB/s\n" +
			"  weir set docker:web --write 10MB/s\n" +
			"  weir set pid:4711 --write 10MB/s --on /data\n" +
			"  weir set unit:nginx --write 5MB/s --on /var/log --persist\n" +
			"  weir set cgroup:/batch --read 50MB/s --on /dev/sda --read max --on /dev/sdb",
		Args: oneTarget,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.named = cmd.Flags().Changed("hold")
			return a.set(cmd.Context(), args[0], limits, o)
		},
	}
	limits.Register(cmd.Flags())
	cmd.Flags().BoolVar(&o.whole, "whole-cgroup", false, "also limit the other processes in the cgroup of a pid; or limit the root cgroup (cgroup v1)")
	cmd.Flags().BoolVar(&o.persist, "persist", false, "keep the limits of a unit over boots, and those of a container over restarts")
	cli.HoldFlag(cmd.Flags(), &o.hold, limit.HoldAuto)
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "print each file and line that would be written, and change nothing")
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

// setOptions are the flags of weir set besides limits.
type setOptions struct {
	whole, persist, dryRun bool
	restored               bool // it is on record already

	steps *[]hold.Step // gets what a dry run would do, instead of the terminal
	hold  limit.Hold
	named bool // somebody has asked for hold, and it is not only usual
}

// toKeep is the value of --hold to save: empty for the default.
func (o setOptions) toKeep() limit.Hold {
	if !o.named {
		return ""
	}
	return o.hold
}

func (a *app) set(ctx context.Context, spec string, limits cli.Limits, o setOptions) error {
	onLimits, err := limits.Resolve()
	if err != nil {
		return err
	}
	if len(onLimits) == 0 {
		return cli.Usagef("set %s: no limit is named; add --read, --write, --read-iops or --write-iops", spec)
	}
	return a.setLimits(ctx, spec, onLimits, o)
}

// setLimits is weir set, once its words are understood.
func (a *app) setLimits(ctx context.Context, spec string, onLimits []limit.Asked, o setOptions) error {
	t, err := a.target(ctx, spec)
	var none *unit.NoGroupError
	if errors.As(err, &none) {
		t, err = a.giveGroup(ctx, none, onLimits, o)
	}
	if err != nil {
		return err
	}
	return a.setTarget(ctx, t, onLimits, o)
}

// setTarget is weir set, once its target is found.
func (a *app) setTarget(ctx context.Context, t target.Target, onLimits []limit.Asked, o setOptions) error {
	if err := alone(t, o.whole); err != nil {
		return err
	}
	if o.named && o.hold != limit.HoldKernel {
		t = withoutEngine(t)
	}
	if t.Group.IsRoot() && t.Group.Hierarchy().Version == cgroupfs.V1 && !o.whole {
		return fmt.Errorf("set %s: on cgroup v1 a limit of the root group applies to all processes without another limit, and to all writeback of this host; add --whole-cgroup if you mean that", t)
	}
	if o.persist {
		if err := a.mayPersist(ctx, t, t.Group.Hierarchy().Version); err != nil {
			return err
		}
		if t.Lasting != "" && !o.dryRun {
			unlock, err := a.lockKept(ctx, true)
			if err != nil {
				return err
			}
			defer unlock()
		}
	}
	onLimits, err := a.onOwnDisks(ctx, onLimits, t)
	if err != nil {
		return err
	}
	places, err := a.place(ctx, onLimits, t.Views())
	if err != nil {
		return err
	}
	var locked hold.Locked // of a dry run nothing
	if !o.dryRun {
		if locked, err = a.lock(ctx, t); err != nil {
			return err
		}
		defer locked.Unlock()
	}
	decided, err := a.deciding().Decide(t.Group, false, places, o.hold)
	if err != nil {
		return err
	}
	plan := a.planFor(t, place.Changes(places))
	if o.persist {
		if err := a.persist(t, &plan, onLimits, o.toKeep()); err != nil {
			return err
		}
	}
	if decided.Paced != nil && o.named && o.persist && (plan.File == nil || plan.Unit != "" && !plan.File.Own) {
		return cli.Usagef("set %s --persist: nothing would start the pacer again with this limit; leave out --hold or --persist", t)
	}
	actions, err := a.setActions(ctx, locked, t, &decided, plan, o.persist)
	if err != nil {
		return err
	}
	if !o.dryRun {
		return a.setPlanned(ctx, t, onLimits, &decided, plan, actions, o)
	}
	a.explain(decided)
	steps, err := stepsOf(ctx, actions)
	if err != nil {
		return err
	}
	if o.steps != nil {
		*o.steps = append(*o.steps, steps...)
		return nil
	}
	return a.dryRun("set", steps)
}

// setPlanned puts limits into force, has them kept, and reports.
func (a *app) setPlanned(ctx context.Context, t target.Target, onLimits []limit.Asked, decided *place.Decision, plan hold.Plan, actions []action, o setOptions) error {
	a.sayDrain(t.Group, *decided)
	if err := doAll(ctx, actions); err != nil {
		return err
	}
	a.out.Say("%s", describe(t))
	a.explain(*decided)
	a.sayForeign(ctx, t, onLimits, *decided)
	if !o.restored {
		a.sayHowLong(t, plan, o.persist)
		a.sayUnpaced(t, *decided, plan, o.persist)
	}
	return a.reportSet("set", t, decided.Places)
}

// alone refuses a pid whose group other processes are in, unless that was asked for.
func alone(t target.Target, whole bool) error {
	if t.PID == 0 || whole {
		return nil
	}
	members, err := target.Members(t.Group)
	if err != nil {
		return err
	}
	if !slices.Contains(members, t.PID) {
		t.PID = leaderOf(t.PID)
	}
	if others := len(slices.DeleteFunc(members, func(pid int) bool { return pid == t.PID })); others > 0 {
		return fmt.Errorf("%s is in cgroup %s with %s, and a limit applies to the whole group; add --whole-cgroup to limit them all, or start the command with weir run",
			t, t.Group.Path(), cli.Plural(others, "other process", "other processes"))
	}
	return nil
}

// leaderOf returns the process of a thread; a process, or what has ended, is its own.
func leaderOf(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return pid
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Tgid:"); ok {
			if leader, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
				return leader
			}
		}
	}
	return pid
}

// planFor makes systemd write for its units on v2. On v1 systemd has no setting for operations
// per second, so weir writes the files, and systemd has to keep the group. (It keeps the groups
// of containers and virtual machines anyway, because they are delegated.) systemd has to leave
// groups alone that others have made beside its units.
func (a *app) planFor(t target.Target, list []hold.Change) hold.Plan {
	plan := hold.Plan{Group: t.Group, Changes: list, Note: func(text string) { a.out.Say("%s", text) }}
	slice := cmp.Or(systemd.SliceOf(t.Group.Path()), systemd.RootSlice)
	if t.Group.Hierarchy().Version == cgroupfs.V2 {
		plan.Unit = t.Owner.Unit
		if a.mayLoseIO(t) {
			plan.Anchor = slice
		}
	} else if t.Owner.Kind == "systemd" {
		plan.Account, plan.Anchor = t.Owner.Unit, slice
	} else if a.mayStray(t.Group) {
		plan.Anchor = systemd.SystemSlice
	}
	return plan
}

// setDocument is the JSON of weir set and weir clear (docs/json.md).
type setDocument struct {
	cli.Schema
	Target  string       `json:"target"`
	Cgroup  string       `json:"cgroup"`
	Version int          `json:"cgroup_version"`
	Owner   target.Owner `json:"owner"`
	Devices []setDevice  `json:"devices"`
}

type setDevice struct {
	Device   string        `json:"device"`
	Number   blkdev.Number `json:"number"`
	Limit    limit.Limit   `json:"limit"`    // in force now, as read back
	Expected []place.Cell  `json:"expected"` // of the rates that were named; of weir clear: none
	Foreign  *place.By     `json:"foreign"`  // see showDevice
}

func (a *app) reportSet(verb string, t target.Target, places []place.Expected) error {
	if !a.out.JSON {
		return nil
	}
	doc := setDocument{Schema: cli.SchemaOf(verb), Target: t.String(), Cgroup: t.Group.Path(), Version: int(t.Group.Hierarchy().Version),
		Owner: t.Owner, Devices: []setDevice{}}
	for _, p := range places {
		now, err := t.Group.Rule(p.Device.Number)
		if verb == "clear" && cgroupfs.IsUnsupported(err) {
			now, err = limit.None, nil // systemd takes io away with the last limit of a slice's units
		}
		if err != nil {
			return err
		}
		doc.Devices = append(doc.Devices, setDevice{p.Device.Node, p.Device.Number, now, p.Cells(), p.Foreign})
	}
	return a.out.Document(doc)
}
