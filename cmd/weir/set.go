package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/limiting"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/internal/ui/text"
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
		Args: cli.OneTarget,
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
	o.plan.Register(cmd.Flags())
	cmd.ValidArgsFunction = a.completeTarget
	a.cgroupFlag(cmd)
	return cmd
}

// setOptions are the flags of weir set besides limits.
type setOptions struct {
	whole, persist, dryRun bool

	plan  cli.NamedPlan
	hold  limit.Hold
	named bool // somebody has asked for hold, and it is not only usual
}

func (a *app) set(ctx context.Context, spec string, limits cli.Limits, o setOptions) error {
	asked, err := o.plan.Resolve(&limits)
	if err == nil {
		asked, err = a.planAsked(ctx, o.plan, spec, asked)
	}
	if err != nil {
		return err
	}
	if len(asked) == 0 {
		return cli.Usagef("set %s: no limit is named; add --read, --write, --read-iops or --write-iops", spec)
	}
	return a.setLimits(ctx, spec, asked, o)
}

// setLimits is weir set, once its words are understood.
func (a *app) setLimits(ctx context.Context, spec string, asked []limit.Asked, o setOptions) error {
	manager, err := a.limits()
	if err != nil {
		return err
	}
	r := limiting.Request{Target: spec, Asked: asked, Whole: o.whole, Persist: o.persist, Foreign: !a.out.Quiet}
	if o.named {
		r.Hold = o.hold
	}
	change, err := manager.PrepareSet(ctx, r)
	return a.change(ctx, "set", change, err, o.dryRun)
}

// change makes a prepared change, or shows what it would do.
func (a *app) change(ctx context.Context, verb string, change limiting.Change, err error, dryRun bool) error {
	if err != nil {
		a.sayNotes(limiting.NotesOf(err))
		return text.Error(err)
	}
	if dryRun {
		preview, err := change.Steps(ctx)
		a.sayPreview(preview)
		if err != nil {
			return text.Error(err)
		}
		return a.dryRun(verb, preview.Steps)
	}
	result, err := change.Apply(ctx)
	a.sayResult(result, err)
	if err != nil || !a.out.JSON {
		return text.Error(err)
	}
	doc, err := api.SetOf(verb, result)
	if err != nil {
		return err
	}
	return a.out.Document(doc)
}

func (a *app) sayPreview(p limiting.Preview) {
	a.sayNotes(p.Notes)
	a.explain(p.Decided)
}

// sayResult says what was done; after an error, what was noted until then.
func (a *app) sayResult(r limiting.Result, err error) {
	a.sayNotes(r.Noted)
	if err != nil {
		return
	}
	if len(r.Decided.Places) > 0 {
		a.out.Say("%s", r.Describe())
		a.explain(r.Decided)
	}
	a.sayNotes(r.Notes)
}

// sayApart is sayResult for a verb whose document is not about limits: it does not have the
// messages.
func (a *app) sayApart(r limiting.Result, err error) {
	lines := *a
	lines.out.JSON = false
	lines.sayResult(r, err)
}
