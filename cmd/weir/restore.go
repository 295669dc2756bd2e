package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/dropin"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/kept"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/target"
)

func newRestore(a *app) *cobra.Command {
	var atBoot, dryRun bool
	cmd := &cobra.Command{
		Use:   "restore [TARGET]...",
		Short: "Set saved limits again after a restart",
		Long: "Set saved limits again on containers that have been restarted. weir set --persist saves a limit in " + kept.Dir + " if\n" +
			"neither systemd nor the container's owner can keep it (cgroup v1, Docker's cgroupfs driver, containerd).\n\n" +
			"Without a target, weir restores all saved limits, and skips containers that do not run. If a container's owner does\n" +
			"not know the container, weir keeps the saved limit until weir clear. --at-boot has systemd run weir restore at each\n" +
			"boot and at each start of Docker, Podman and containerd; --at-boot=false ends that.",
		Example: "  weir restore\n  weir restore docker:web\n  weir restore --at-boot",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if cmd.Flags().Changed("at-boot") {
				if len(args) > 0 || dryRun {
					return cli.Usagef("restore --at-boot: it restores all, and takes no target and no --dry-run")
				}
				if !atBoot {
					return a.restoreNotAtBoot(ctx)
				}
				if err := a.restoreAtBoot(ctx); err != nil {
					return err
				}
			}
			return a.restore(ctx, args, dryRun)
		},
	}
	cmd.Flags().BoolVar(&atBoot, "at-boot", false, "have systemd do this at each boot")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print each file and line that would be written, and change nothing")
	return cmd
}

// restoreUnit sets kept limits when the host, or what makes containers, has started.
const restoreUnit = "weir-restore.service"

func (a *app) restoreAtBoot(ctx context.Context) error {
	program, err := ownPath()
	if err != nil {
		return err
	}
	if err := a.installUnits(ctx, "restore --at-boot", map[string]string{restoreUnit: dropin.RestoreText(program)}); err != nil {
		return err
	}
	a.out.Say("systemd sets saved limits again at boot, and when Docker, Podman or containerd starts: %s", unitDir+restoreUnit)
	return nil
}

func (a *app) restoreNotAtBoot(ctx context.Context) error {
	if err := a.removeUnits(ctx, "restore --at-boot=false", restoreUnit); err != nil {
		return err
	}
	a.out.Say("systemd no longer sets saved limits at boot")
	if !a.out.JSON {
		return nil
	}
	return a.out.Document(restoreDocument{Schema: cli.SchemaOf("restore"), Targets: []restoreTarget{}})
}

// restoreDocument is the JSON of weir restore (docs/json.md).
type restoreDocument struct {
	cli.Schema
	Targets []restoreTarget `json:"targets"`
}

type restoreTarget struct {
	Target string     `json:"target"` // by its owner's name for good
	Name   string     `json:"name"`   // as the user spelled it
	State  string     `json:"state"`  // "set", "stopped", "unknown" or "failed"
	Why    string     `json:"why,omitempty"`
	Kept   []api.Kept `json:"kept"`
}

// What became of a record.
const (
	restored = "set"
	stopped  = "stopped"
	unknown  = "unknown"
	failed   = "failed"
)

func (a *app) restore(ctx context.Context, specs []string, dryRun bool) error {
	h, err := a.io()
	if err != nil {
		return err
	}
	if err := h.Writable(); err != nil && !dryRun {
		return err
	}
	all, err := kept.List(a.root)
	records, notFound := a.keptOf(ctx, all, specs)
	errs := []error{err, notFound}
	doc := restoreDocument{Schema: cli.SchemaOf("restore"), Targets: []restoreTarget{}}
	var steps []hold.Step
	for _, r := range records {
		into := &steps
		if !dryRun {
			into = nil
		}
		state, err := a.restoreOne(ctx, r.Target, into)
		one := restoreTarget{Target: r.Target, Name: r.Name, State: state, Kept: api.KeptOf(r.Entries)}
		if err != nil {
			one.Why = err.Error()
		}
		doc.Targets = append(doc.Targets, one)
		switch state {
		case stopped:
			a.out.Say("%s is not running; run weir restore when it is", r.Name)
		case unknown:
			a.out.Say("the owner of %s does not know it; the saved limit stays until weir clear %s", r.Name, r.Target)
		case failed:
			errs = append(errs, err)
		}
	}
	if len(records) == 0 && errors.Join(errs...) == nil {
		a.out.Say("no limit is saved; weir set --persist saves the limit of a container")
	}
	if dryRun {
		errs = append(errs, a.dryRun("restore", steps))
	} else if a.out.JSON {
		errs = append(errs, a.out.Document(doc))
	}
	return errors.Join(errs...)
}

// restoreOne sets what a target's record has, if it runs; with steps, it notes what it would
// do. One place that cannot be limited keeps no other from it.
func (a *app) restoreOne(ctx context.Context, lasting string, steps *[]hold.Step) (string, error) {
	unlock, err := a.lockKept(ctx, false)
	if err != nil {
		return failed, err
	}
	defer unlock()
	r, err := kept.Read(a.root, lasting) // it may have been cleared meanwhile
	if err != nil {
		return failed, err
	}
	kind, _, _ := strings.Cut(lasting, ":")
	its := *a
	its.out.JSON, its.host = false, a.host.With(kind, r.Host)
	t, err := its.target(ctx, lasting)
	var isStopped *target.StoppedError
	var none *target.NotFound
	switch {
	case errors.As(err, &isStopped) && isStopped.Lasting == lasting:
		return stopped, nil
	case errors.As(err, &none), errors.As(err, &isStopped), err == nil && t.Lasting != lasting: // the beginning of another's id
		return unknown, nil
	case err != nil:
		return failed, fmt.Errorf("restore %s: %w", r.Name, err)
	}
	var errs []error
	for _, e := range r.Entries {
		o := setOptions{hold: cmp.Or(e.Hold, limit.HoldAuto), named: e.Hold != "", dryRun: steps != nil, steps: steps, restored: true}
		if err := its.setTarget(ctx, t, []limit.Asked{{On: e.On, Limit: e.Limit}}, o); err != nil {
			errs = append(errs, fmt.Errorf("restore %s: %w", r.Name, err))
		}
	}
	if errs != nil {
		return failed, errors.Join(errs...)
	}
	return restored, nil
}

// keptOf picks the records of targets that are named, as they were when the limits were
// set, or are now.
func (a *app) keptOf(ctx context.Context, all []kept.Record, specs []string) ([]kept.Record, error) {
	if len(specs) == 0 {
		return all, nil
	}
	var some []kept.Record
	var errs []error
	for _, spec := range specs {
		lasting, err := a.lastingOf(ctx, spec)
		found := false
		for _, r := range all {
			// The name may be another's by now.
			if r.Target == spec || r.Target == lasting || err != nil && r.Name == spec {
				some, found = append(some, r), true
			}
		}
		switch {
		case found:
		case err != nil:
			errs = append(errs, err)
		default:
			errs = append(errs, fmt.Errorf("restore %s: no limit is saved for it; weir set %s --persist saves one", spec, spec))
		}
	}
	return some, errors.Join(errs...)
}

// lastingOf is the name that a target has for good, also if it does not run.
func (a *app) lastingOf(ctx context.Context, spec string) (string, error) {
	t, err := a.target(ctx, spec)
	var isStopped *target.StoppedError
	if errors.As(err, &isStopped) {
		return isStopped.Lasting, nil
	}
	return t.Lasting, err
}
