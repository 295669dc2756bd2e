package main

import (
	"context"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/systemd"
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
