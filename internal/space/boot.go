package space

import (
	"context"
	"os"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/keep"
)

// The units that bring volumes up at boot, and set the limits of those that they are for.
const (
	VolumesUnit = "weir-volumes.service"
	LimitsUnit  = "weir-volumes-limits.service"
)

// A Boot has systemd bring the volumes of a host up when the host starts.
type Boot struct {
	Host *host.Host
	keep.Boot
	// Program returns the path of the weir that systemd runs then.
	Program func() (string, error)
}

// Install writes the units, and has systemd start them at boot.
func (b Boot) Install(ctx context.Context) error {
	texts, err := b.texts()
	if err != nil {
		return err
	}
	return b.Boot.Install(ctx, texts)
}

// Remove removes the units.
func (b Boot) Remove(ctx context.Context) error { return b.Boot.Remove(ctx, VolumesUnit, LimitsUnit) }

// Refresh has the units know of other volumes, if there are units.
func (b Boot) Refresh(ctx context.Context) error {
	if !installed() {
		return nil
	}
	texts, err := b.texts()
	if err != nil {
		return err
	}
	return b.Rewrite(ctx, texts)
}

// installed reports whether there are units.
func installed() bool {
	_, err := os.Stat(keep.UnitDir + VolumesUnit)
	return err == nil
}

// texts are the units: they wait for the disks that volumes are on.
func (b Boot) texts() (map[string]string, error) {
	all, _ := b.Host.Volumes(nil).List() // one that cannot be read cannot be brought up, and Up says so
	program, err := b.Program()
	return map[string]string{VolumesUnit: dropin.VolumesText(program, pathsOf(all)), LimitsUnit: dropin.LimitsText(program)}, err
}

// pathsOf are the paths whose mounts volumes need.
func pathsOf(all []volume.Volume) []string {
	paths := []string{volume.Dir}
	for _, v := range all {
		paths = append(paths, v.Mount)
		if !v.Adopted() {
			paths = append(paths, v.Image)
		}
	}
	return paths
}
