package keep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/base/cmdline"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets/vm"
)

// libvirt keeps the limits of its domains in their configuration.
type libvirt struct{ base }

func (libvirt) By() string { return "libvirt" }

// May returns an error if libvirt has no configuration of the domain.
func (k libvirt) May(ctx context.Context) error {
	_, err := k.config(ctx)
	return err
}

func (k libvirt) config(ctx context.Context) (vm.Config, error) {
	config, err := k.h.Machines(k.t.Group.Hierarchy()).ConfigOf(k.t.Name)
	if err == nil {
		_, err = config.Limits(ctx)
	}
	return config, err
}

func (k libvirt) Keep(_ context.Context, w Wanted, _ *hold.Plan) (Edit, error) {
	return Edit{After: []Action{keepDomain{k, byNode(w.Places)}}}, nil
}

// Forget has systemd forget the limits of the domain's scope too.
func (k libvirt) Forget(ctx context.Context, only []blkdev.Number, plan *hold.Plan) (Edit, error) {
	edit, err := k.byUnit().Forget(ctx, only, plan)
	edit.After = append(edit.After, forgetDomain{k, only})
	return edit, err
}

func (k libvirt) Lasts(plan hold.Plan, kept bool) []note.Note {
	if kept {
		return []note.Note{note.Infof("kept", "libvirt keeps the limit for the next start of %s", k.t).With(fault.Remedy{Do: fault.Clear})}
	}
	return k.lost(plan)
}

// byNode are the limits by device, as libvirt takes them.
func byNode(places []place.Expected) map[string]limit.Limit {
	all := map[string]limit.Limit{}
	for _, p := range places {
		all[p.Device.Node] = all[p.Device.Node].Overlay(p.Limit)
	}
	return all
}

// keepDomain has libvirt keep limits for the next start of a domain.
type keepDomain struct {
	k      libvirt
	limits map[string]limit.Limit
}

func (a keepDomain) Steps(ctx context.Context) ([]hold.Step, error) {
	config, err := a.k.config(ctx)
	if err != nil {
		return nil, err
	}
	return domainSteps(config, a.limits)
}

func (a keepDomain) Do(ctx context.Context) (Done, error) {
	config, err := a.k.config(ctx)
	if err != nil {
		return Done{}, err
	}
	if err := config.Keep(ctx, a.limits); err != nil {
		return Done{}, fmt.Errorf("%w; the limit is in force, but libvirt does not keep it", err)
	}
	return Done{}, nil
}

// domainSteps is the command that makes libvirt store limits; none if it would change nothing.
func domainSteps(config vm.Config, all map[string]limit.Limit) ([]hold.Step, error) {
	command, err := config.KeepCommand(all)
	if err != nil || command == nil {
		return nil, err
	}
	return []hold.Step{{Command: cmdline.Line(command)}}, nil
}

// forgetDomain has libvirt keep no limits for a domain any more, on the devices that are named;
// none: on all.
type forgetDomain struct {
	k    libvirt
	only []blkdev.Number
}

func (a forgetDomain) Steps(ctx context.Context) ([]hold.Step, error) {
	if !a.k.h.IsOwn() {
		return nil, nil // a copy's libvirt cannot be asked
	}
	config, lifted, err := a.lifted(ctx)
	if err != nil {
		return nil, err
	}
	return domainSteps(config, lifted)
}

func (a forgetDomain) Do(ctx context.Context) (done Done, err error) {
	config, lifted, err := a.lifted(ctx)
	if err != nil || len(lifted) == 0 {
		return done, err
	}
	done.Note = note.Infof("forgotten", "libvirt no longer keeps a limit for it")
	return done, config.Keep(ctx, lifted)
}

func (a forgetDomain) lifted(ctx context.Context) (vm.Config, map[string]limit.Limit, error) {
	config, err := a.k.h.Machines(a.k.t.Group.Hierarchy()).ConfigOf(a.k.t.Name)
	if err != nil {
		return config, nil, err
	}
	lifted, err := liftsOf(ctx, a.k.h, config, a.only)
	return config, lifted, err
}

// liftsOf is what lifts the limits that libvirt keeps for a domain.
func liftsOf(ctx context.Context, h *host.Host, config vm.Config, only []blkdev.Number) (map[string]limit.Limit, error) {
	kept, err := config.Limits(ctx)
	var unsupported *fault.Unsupported
	if errors.As(err, &unsupported) || err != nil && strings.Contains(err.Error(), "transient domains") {
		return nil, nil // without virsh weir has kept nothing, and of a domain without a configuration nobody
	}
	if err != nil {
		return nil, err
	}
	lifted := map[string]limit.Limit{}
	for path, l := range kept {
		if len(only) > 0 {
			devices, err := h.DevicesOf(ctx, []string{path})
			if err != nil || !slices.ContainsFunc(devices, func(n blkdev.Number) bool { return slices.Contains(only, n) }) {
				continue
			}
		}
		for _, k := range limit.Keys {
			if l.Get(k).IsSet() {
				lifted[path] = lifted[path].With(k, limit.Unlimited)
			}
		}
	}
	return lifted, nil
}
