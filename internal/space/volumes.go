package space

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/loopdev"
)

// Volumes changes and shows the volumes of one host.
type Volumes struct {
	Host  *host.Host
	store volume.Store
}

// A Volume is a volume as it is now.
type Volume struct {
	volume.Volume
	Up     bool
	Device blkdev.Device // while it is up
	Size   uint64        // bytes of the file or, adopted, of the file system; 0: not known
	Used   uint64        // bytes of the file system; 0 while it is down
	Err    error         // why it is not known whether it is up, or nil
}

// A Made is a volume that has been brought up or changed, with what its limit does.
type Made struct {
	Volume
	// Version is that of the hierarchy that the limit is set in; 0: this host limits nothing.
	Version cgroupfs.Version
	// Ahead is how many bytes may wait in memory, if Strict says so.
	Ahead uint64
	// Bound reports whether a limit in bytes bounds writes.
	Bound bool
	// Strict reports whether the writers are held too, and not the device alone.
	Strict bool
	// Doubled reports whether the data of the volume is in memory twice, because the file system
	// of its file has no direct I/O.
	Doubled bool
}

// MayUseVolumes returns an error unless this process may change volumes.
func MayUseVolumes() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("volume: %w (it mounts file systems; run weir as root)", fs.ErrPermission)
	}
	return nil
}

// OpenVolumes opens the volumes of a host for changes. A host whose kernel limits nothing has
// volumes without limits.
func OpenVolumes(h *host.Host) (Volumes, error) {
	if !h.IsOwn() {
		return Volumes{}, &fault.Unsupported{Feature: "volume", Reason: "volumes are this host's"}
	}
	if err := MayUseVolumes(); err != nil {
		return Volumes{}, err
	}
	io, err := h.IO()
	var none *fault.Unsupported
	if err != nil && !errors.As(err, &none) {
		return Volumes{}, err
	}
	v := Volumes{h, h.Volumes(io)}
	if none != nil {
		v.store.IO, v.store.WhyNone = nil, none
	}
	return v, nil
}

// List reads all volumes. One whose record cannot be read is in the error, beside the others.
func List(ctx context.Context, h *host.Host) ([]Volume, error) {
	v := Volumes{Host: h, store: h.Volumes(nil)}
	all, err := v.store.List()
	return v.describeAll(ctx, all), err
}

// Named are the volumes that are named, or if none is, the names of all, with List's errors.
func (v Volumes) Named(names []string) ([]string, error) {
	if len(names) > 0 {
		return names, nil
	}
	return namesOf(v.store)
}

// Names are the names of all volumes of a host, as far as they can be read.
func Names(h *host.Host) []string {
	names, _ := namesOf(h.Volumes(nil))
	return names
}

func namesOf(s volume.Store) ([]string, error) {
	all, err := s.List()
	var names []string
	for _, v := range all {
		names = append(names, v.Name)
	}
	return names, err
}

func (v Volumes) describeAll(ctx context.Context, all []volume.Volume) []Volume {
	var described []Volume
	for _, one := range all {
		described = append(described, v.describe(ctx, one))
	}
	return described
}

// describe reads how a volume is now.
func (v Volumes) describe(ctx context.Context, one volume.Volume) Volume {
	d := Volume{Volume: one}
	if st, err := os.Stat(one.Image); err == nil && one.Image != "" {
		d.Size = uint64(st.Size())
	}
	at, err := v.store.Where(one)
	d.Err = err
	if !at.Up || err != nil {
		return d
	}
	d.Up, d.Device = true, v.Host.Device(ctx, at.Device)
	var room unix.Statfs_t
	if err := unix.Statfs(one.Mount, &room); err == nil {
		d.Used = (room.Blocks - room.Bfree) * uint64(room.Bsize)
		if one.Adopted() {
			d.Size = room.Blocks * uint64(room.Bsize)
		}
	}
	return d
}

func (v Volumes) made(ctx context.Context, one volume.Volume, strict bool) Made {
	m := Made{Volume: v.describe(ctx, one), Strict: strict}
	if v.store.IO != nil {
		m.Version = v.store.IO.Version
	}
	m.Ahead, m.Bound = volume.DirtyFor(one.Limit)
	if n, is := loopdev.Of(m.Device.Number); m.Up && one.Image != "" {
		m.Doubled = !is || !loopdev.DirectIO(n)
	}
	return m
}

// Create creates a volume and mounts it. It is taken back completely if the context ends
// meanwhile. Targets that it is for are to be limited
// afterwards: see LimitTargets.
func (v Volumes) Create(ctx context.Context, spec volume.Spec) (Made, error) {
	if err := v.checkTargets(ctx, spec.For); err != nil {
		return Made{}, err
	}
	one, strict, err := v.store.Create(ctx, spec)
	if err != nil {
		return Made{}, err
	}
	return v.made(ctx, one, strict), nil
}

// Adopt limits an existing mount, which has a device of its own.
func (v Volumes) Adopt(ctx context.Context, dir string, l limit.Limit, targets []string) (Made, error) {
	if err := v.checkTargets(ctx, targets); err != nil {
		return Made{}, err
	}
	one, strict, err := v.store.Adopt(ctx, dir, l, targets)
	if err != nil {
		return Made{}, err
	}
	return v.made(ctx, one, strict), nil
}

// Find finds a volume by its name or its directory.
func (v Volumes) Find(what string) (volume.Volume, error) { return v.store.Find(what) }

// Set changes the rates that a limit names, and adds targets. A volume that is down gets the limit
// once it is up.
func (v Volumes) Set(ctx context.Context, what string, l limit.Limit, targets []string) (Made, error) {
	was, err := v.store.Find(what)
	if err != nil {
		return Made{}, err
	}
	if err := v.checkTargets(ctx, targets); err != nil {
		return Made{}, err
	}
	one, strict, err := v.store.Set(ctx, was.Name, l, targets)
	if err != nil {
		return Made{}, err
	}
	m := v.made(ctx, one, strict)
	return m, m.Err
}

// Up mounts a volume that is down, and sets the limit of one that is up again. With accept, the
// file that is there now is accepted as the volume's own. A Made with a name comes with some
// errors too: it is the volume that could not be brought up.
func (v Volumes) Up(ctx context.Context, name string, accept bool) (Made, error) {
	one, strict, err := v.store.Up(ctx, name, accept)
	if one.Name == "" {
		return Made{}, err
	}
	return v.made(ctx, one, strict), err
}

// Resize makes a volume larger while it is in use. Size is in bytes.
func (v Volumes) Resize(ctx context.Context, what string, size uint64) (Volume, error) {
	return v.described(ctx)(v.store.Resize(ctx, what, size))
}

// Down unmounts a volume that nobody uses.
func (v Volumes) Down(ctx context.Context, what string) (Volume, error) {
	return v.described(ctx)(v.store.Down(ctx, what))
}

func (v Volumes) described(ctx context.Context) func(volume.Volume, error) (Volume, error) {
	return func(one volume.Volume, err error) (Volume, error) {
		if err != nil {
			return Volume{}, err
		}
		return v.describe(ctx, one), nil
	}
}

// Delete deletes a volume that is down, with all files on it. It returns what was deleted.
func (v Volumes) Delete(ctx context.Context, what string) (volume.Volume, error) {
	return v.store.Delete(ctx, what)
}

// Forget removes a volume that is down from weir's records.
func (v Volumes) Forget(ctx context.Context, what string) (volume.Volume, error) {
	return v.store.Forget(ctx, what)
}
