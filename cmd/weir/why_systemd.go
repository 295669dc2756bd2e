package main

import (
	"context"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/systemd"
)

// unitLimits asks systemd for the limits that it keeps for a unit. An entry stands for
// each device on systemd's way to the one whose rule it writes, and a later entry for a
// device takes the place of an earlier one, as it does in io.max.
func unitLimits(ctx context.Context, unit string) (map[blkdev.Number]limit.Limit, error) {
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	entries, err := conn.IOLimits(ctx, unit)
	if err != nil {
		return nil, err
	}
	kept := map[blkdev.Number]limit.Limit{}
	for _, e := range entries {
		for _, dev := range e.Devices {
			kept[dev] = e.Limit
		}
	}
	return kept, nil
}
