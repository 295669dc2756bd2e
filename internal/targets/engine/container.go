package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/targets"
)

// A container is what this package reads of an engine's description of a container.
type container struct {
	api   string // the version of the engine's API; see answer
	by    string // the version of the engine
	ID    string
	State struct {
		Status string // "running", "exited" ...
		Pid    int    // of its first process; 0: it has none
	}
	HostConfig struct {
		BlkioDeviceReadBps, BlkioDeviceWriteBps   []throttle
		BlkioDeviceReadIOps, BlkioDeviceWriteIOps []throttle
	}
}

// A throttle is a rate per second on a device, which the engine was given by path.
type throttle struct {
	Path string
	Rate uint64
}

var errManyDevices = errors.New("it is no single device")

// record returns the limits that the engine stores, device by device.
func (c container) record(ctx context.Context, devices blkdev.FS, m Maker) *targets.Record {
	r := &targets.Record{By: m.title, Command: m.kind, Version: c.by, Source: m.kind + " inspect " + c.ID[:12] + " (HostConfig)", Updates: m.updates(c.api)}
	for k, list := range map[limit.Key][]throttle{
		limit.RBPS: c.HostConfig.BlkioDeviceReadBps, limit.WBPS: c.HostConfig.BlkioDeviceWriteBps,
		limit.RIOPS: c.HostConfig.BlkioDeviceReadIOps, limit.WIOPS: c.HostConfig.BlkioDeviceWriteIOps,
	} {
		for _, t := range list {
			if t.Rate == 0 {
				continue // none, in the kernel's files of v1
			}
			i := slices.IndexFunc(r.Limits, func(l targets.Recorded) bool { return l.Path == t.Path })
			if i < 0 {
				i = len(r.Limits)
				r.Limits = append(r.Limits, recorded(ctx, devices, t.Path))
			}
			r.Limits[i].Limit = r.Limits[i].Limit.With(k, limit.PerSecond(t.Rate))
		}
	}
	slices.SortFunc(r.Limits, func(a, b targets.Recorded) int { return strings.Compare(a.Path, b.Path) })
	return r
}

// recorded finds the device that the engine knows by path.
func recorded(ctx context.Context, devices blkdev.FS, path string) targets.Recorded {
	l := targets.Recorded{Path: short(path)}
	chain, err := devices.Resolve(ctx, path)
	switch {
	case err != nil:
		l.Err = err
	case len(chain.Devices) != 1:
		l.Err = errManyDevices
	default:
		l.Device = chain.Devices[0].Number
	}
	return l
}
