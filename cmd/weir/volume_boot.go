package main

import (
	"context"
	"errors"

	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/space"
)

// volumesBoot is what brings volumes up at boot.
func (a *app) volumesBoot(feature string) space.Boot {
	return space.Boot{Host: a.host, Boot: a.boot(feature), Program: ownPath}
}

func (a *app) atBoot(ctx context.Context) error {
	if err := a.volumesBoot("volume up --at-boot").Install(ctx); err != nil {
		return err
	}
	a.out.Say("systemd mounts the volumes at boot (%s) and then limits their targets (%s)", keep.UnitDir+space.VolumesUnit, keep.UnitDir+space.LimitsUnit)
	return nil
}

func (a *app) notAtBoot(ctx context.Context) error {
	if err := a.volumesBoot("volume up --at-boot=false").Remove(ctx); err != nil {
		return err
	}
	a.out.Say("systemd no longer mounts the volumes at boot")
	all, err := space.List(ctx, a.host)
	return errors.Join(err, a.reportVolumes(all...))
}

// refreshBoot has the units know of other volumes.
func (a *app) refreshBoot(ctx context.Context) error {
	return a.volumesBoot("volume up --at-boot").Refresh(ctx)
}
