package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/hold"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/target/vm"
)

// domainConfig is libvirt's configuration of a running virtual machine. It returns an error if
// libvirt has none.
func (a *app) domainConfig(ctx context.Context, t target.Target) (vm.Config, error) {
	config, err := a.machines(t.Group.Hierarchy()).ConfigOf(t.Name)
	if err == nil {
		_, err = config.Limits(ctx)
	}
	return config, err
}

// keepDomain has libvirt keep limits for the next start of a virtual machine.
func (a *app) keepDomain(ctx context.Context, t target.Target, places []place.Expected) error {
	config, err := a.domainConfig(ctx, t)
	if err != nil {
		return err
	}
	if err := config.Keep(ctx, byNode(places)); err != nil {
		return fmt.Errorf("%w; the limit is in force, but libvirt does not keep it", err)
	}
	return nil
}

// keepDomainSteps is what keepDomain would do.
func (a *app) keepDomainSteps(ctx context.Context, t target.Target, places []place.Expected) ([]hold.Step, error) {
	config, err := a.domainConfig(ctx, t)
	if err != nil {
		return nil, err
	}
	return domainSteps(config, byNode(places))
}

// domainSteps is the command that makes libvirt store limits; none if it would change nothing.
func domainSteps(config vm.Config, all map[string]limit.Limit) ([]hold.Step, error) {
	command, err := config.KeepCommand(all)
	if err != nil || command == nil {
		return nil, err
	}
	for i, word := range command {
		command[i] = cli.Quote(word)
	}
	return []hold.Step{{Command: strings.Join(command, " ")}}, nil
}

// byNode are the limits of devices by their nodes.
func byNode(places []place.Expected) map[string]limit.Limit {
	all := map[string]limit.Limit{}
	for _, p := range places {
		all[p.Device.Node] = all[p.Device.Node].Overlay(p.Limit)
	}
	return all
}

// forgetDomain has libvirt keep no limits for a virtual machine any more, on the devices
// that are named; none: on all. It returns how many it kept.
func (a *app) forgetDomain(ctx context.Context, config vm.Config, only []blkdev.Number) (int, error) {
	lifted, err := a.liftsOf(ctx, config, only)
	if err != nil || len(lifted) == 0 {
		return 0, err
	}
	return len(lifted), config.Keep(ctx, lifted)
}

// forgetDomainSteps is what forgetDomain would do.
func (a *app) forgetDomainSteps(ctx context.Context, t target.Target, only []blkdev.Number) ([]hold.Step, error) {
	config, err := a.machines(t.Group.Hierarchy()).ConfigOf(t.Name)
	if err != nil {
		return nil, err
	}
	lifted, err := a.liftsOf(ctx, config, only)
	if err != nil {
		return nil, err
	}
	return domainSteps(config, lifted)
}

// liftsOf is what lifts the limits that libvirt keeps for a virtual machine.
func (a *app) liftsOf(ctx context.Context, config vm.Config, only []blkdev.Number) (map[string]limit.Limit, error) {
	kept, err := config.Limits(ctx)
	var unsupported *cgroupfs.Unsupported
	if errors.As(err, &unsupported) || err != nil && strings.Contains(err.Error(), "transient domains") {
		return nil, nil // without virsh weir has kept nothing, and of a domain without a configuration nobody
	}
	if err != nil {
		return nil, err
	}
	lifted := map[string]limit.Limit{}
	for path, l := range kept {
		if len(only) > 0 {
			devices, err := a.devicesNamed(ctx, []string{path})
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

// clearDomain has libvirt keep no limits for a virtual machine that does not run; in a dry
// run it is told what would do that. done is false if it kept none.
func (a *app) clearDomain(ctx context.Context, name string, dryRun bool) (steps []hold.Step, done bool) {
	if a.root != "/" {
		return nil, false // a copy's libvirt cannot be asked
	}
	for _, config := range vm.Configs(name) {
		lifted, err := a.liftsOf(ctx, config, nil) // of one of them libvirt knows nothing
		if err != nil || len(lifted) == 0 {
			continue
		}
		if !dryRun {
			done = config.Keep(ctx, lifted) == nil || done
			continue
		}
		if more, err := domainSteps(config, lifted); err == nil {
			steps = append(steps, more...)
		}
	}
	return steps, done
}
