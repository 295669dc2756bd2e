package main

import (
	"context"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/target"
	"github.com/weir-io/weir/internal/why"
)

// unitLimits asks systemd for the limits that it keeps for a unit. An entry stands for
// each device on systemd's way to the one whose rule it writes.
func unitLimits(ctx context.Context, unit string) (map[blkdev.Number][]why.Spelling, error) {
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	entries, err := conn.IOLimits(ctx, unit)
	if err != nil {
		return nil, err
	}
	kept := map[blkdev.Number][]why.Spelling{}
	for _, e := range entries {
		for _, dev := range e.Devices {
			kept[dev] = append(kept[dev], why.Spelling{Path: e.Path, Limit: e.Limit})
		}
	}
	return kept, nil
}

// unitRecord is what systemd keeps for a target that is a unit of its own on cgroup v2;
// nil for another one, or if systemd does not say.
func (a *app) unitRecord(ctx context.Context, t target.Target) *target.Record {
	if t.Owner.Kind != "systemd" || t.Owner.Unit == "" || t.Group.Hierarchy().Version != 2 || !systemd.Running(a.root) || a.root != "" && a.root != "/" {
		return nil
	}
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return nil
	}
	defer conn.Close()
	entries, err := conn.IOLimits(ctx, t.Owner.Unit)
	if err != nil {
		return nil
	}
	r := &target.Record{By: "systemd", Source: "systemctl show " + t.Owner.Unit}
	for _, e := range entries {
		one := target.Recorded{Path: e.Path, Limit: e.Limit, Err: errNoDevice}
		if n := len(e.Devices); n > 0 {
			one.Device, one.Err = e.Devices[n-1], nil
		}
		r.Limits = append(r.Limits, one)
	}
	return r
}
