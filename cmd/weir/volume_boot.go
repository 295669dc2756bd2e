package main

import (
	"context"
	"errors"
	"os"

	"github.com/weir-io/weir/internal/dropin"
	"github.com/weir-io/weir/internal/space"
	"github.com/weir-io/weir/internal/volume"
)

// The units that bring volumes up at boot, and set the limits of those that they are for.
const (
	volumesUnit = "weir-volumes.service"
	limitsUnit  = "weir-volumes-limits.service"
)

func (a *app) atBoot(ctx context.Context) error {
	texts, err := a.bootTexts()
	if err != nil {
		return err
	}
	if err := a.installUnits(ctx, "volume up --at-boot", texts); err != nil {
		return err
	}
	a.out.Say("systemd mounts the volumes at boot (%s) and then limits their targets (%s)", unitDir+volumesUnit, unitDir+limitsUnit)
	return nil
}

func (a *app) notAtBoot(ctx context.Context) error {
	if err := a.removeUnits(ctx, "volume up --at-boot=false", volumesUnit, limitsUnit); err != nil {
		return err
	}
	a.out.Say("systemd no longer mounts the volumes at boot")
	all, err := space.List(ctx, a.host)
	return errors.Join(err, a.reportVolumes(all...))
}

// bootTexts are the units: they wait for the disks that volumes are on.
func (a *app) bootTexts() (map[string]string, error) {
	all, _ := a.host.Volumes(nil).List() // what cannot be read cannot be brought up, and weir volume up says so
	paths := []string{volume.Dir}
	for _, v := range all {
		paths = append(paths, v.Mount)
		if !v.Adopted() {
			paths = append(paths, v.Image)
		}
	}
	program, err := ownPath()
	return map[string]string{volumesUnit: dropin.VolumesText(program, paths), limitsUnit: dropin.LimitsText(program)}, err
}

// refreshBoot has the units know of other volumes, if there are units.
func (a *app) refreshBoot(ctx context.Context) error {
	if _, err := os.Stat(unitDir + volumesUnit); err != nil {
		return nil
	}
	texts, err := a.bootTexts()
	if err != nil {
		return err
	}
	return a.boot("volume up --at-boot").Rewrite(ctx, texts)
}
