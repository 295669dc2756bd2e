package host

import (
	"context"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/place"
)

// Devices resolves places to block devices.
func (h *Host) Devices() blkdev.FS {
	if h.devices != nil {
		return *h.devices
	}
	return blkdev.New(h.Root)
}

// ForMany is the same host, for who works on many targets now: it finds once what the same places lead to. Only the first
// host is to be closed.
func (h *Host) ForMany() *Host {
	other, devices := *h, h.Devices().ForMany()
	other.devices = &devices
	return &other
}

// Kernel reads the facts of this host's kernel.
func (h *Host) Kernel() kernel.FS { return kernel.New(h.Root) }

// Device reads what is known of a device. One that is gone has its number for a name.
func (h *Host) Device(ctx context.Context, n blkdev.Number) blkdev.Device {
	d, err := h.Devices().Device(ctx, n)
	if err != nil {
		return blkdev.Device{Number: n, Name: n.String(), Node: n.String()}
	}
	return d
}

// DevicesOf returns the devices that places lead to.
func (h *Host) DevicesOf(ctx context.Context, places []string) ([]blkdev.Number, error) {
	var numbers []blkdev.Number
	for _, p := range places {
		chain, err := h.Devices().Resolve(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, d := range chain.Devices {
			numbers = append(numbers, d.Number)
		}
	}
	return numbers, nil
}

// Deciding reads the facts of a decision, and decides.
func (h *Host) Deciding() place.Host {
	return place.Host{Root: h.Root, FS: h.FS, State: h.State, NoBPF: h.Helpers.Missing}
}

// Systemd connects to systemd, or uses a connection that is there. The caller closes it after use.
func (h *Host) Systemd(ctx context.Context) (*systemd.Conn, error) { return h.line.Connect(ctx) }

// Holder puts rules into force.
func (h *Host) Holder() hold.Holder {
	return hold.Holder{State: h.State, Connect: h.Systemd, Pacer: h.Pacer()}
}

// Pacer asks weir's pacer.
func (h *Host) Pacer() pacer.Client { return pacer.Client{State: h.State, FS: h.FS} }

// Launch runs commands in groups of their own.
func (h *Host) Launch() launch.Host {
	return launch.Host{FS: h.FS, State: h.State, Holder: h.Holder(), SystemdRuns: h.SystemdRuns()}
}

// Volumes is the store of this host's volumes, with limits in one hierarchy; nil: the volumes are
// only looked at.
func (h *Host) Volumes(io *cgroupfs.Hierarchy) volume.Store {
	return volume.Store{Dir: volume.Dir, State: h.State, Holder: h.Holder(), Devices: h.Devices(), Kernel: h.Kernel(), IO: io,
		Undo: func() error { return h.Holder().Undo(h.FS) }}
}

// Quotas is the store of the quotas of the machine that weir runs on.
func (h *Host) Quotas() quota.Store {
	return quota.Store{Dir: quota.Dir, Devices: blkdev.New("/"), Names: "/etc/projid"}
}
