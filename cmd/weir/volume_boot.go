package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/dropin"
	"github.com/weir-io/weir/internal/durable"
	"github.com/weir-io/weir/internal/systemd"
	"github.com/weir-io/weir/internal/volume"
)

// The units that bring volumes up at boot, and set the limits of those that they are for.
const (
	unitDir     = "/etc/systemd/system/"
	volumesUnit = "weir-volumes.service"
	limitsUnit  = "weir-volumes-limits.service"
)

func (a *app) atBoot(ctx context.Context, s volume.Store) error {
	if !systemd.Running("/") {
		return &cgroupfs.Unsupported{Feature: "volume up --at-boot", Reason: "systemd does not run here", Remedy: "have what starts this host call weir volume up"}
	}
	if err := writeBoot(s); err != nil {
		return err
	}
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Reload(ctx); err != nil {
		return err
	}
	if err := conn.Enable(ctx, true, volumesUnit, limitsUnit); err != nil {
		return err
	}
	a.out.Say("volumes come up at boot: %s, and what they are for has its limit: %s", unitDir+volumesUnit, unitDir+limitsUnit)
	return nil
}

func (a *app) notAtBoot(ctx context.Context, s volume.Store) error {
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Enable(ctx, false, volumesUnit, limitsUnit); err != nil {
		return err
	}
	for _, name := range []string{volumesUnit, limitsUnit} {
		if err := os.Remove(unitDir + name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("volume up --at-boot=false: %w", err)
		}
	}
	if err := conn.Reload(ctx); err != nil {
		return err
	}
	a.out.Say("volumes do not come up at boot any more")
	all, err := s.List()
	return errors.Join(err, a.reportVolumes(ctx, s, all...))
}

// writeBoot writes the units: they wait for the disks that volumes are on.
func writeBoot(s volume.Store) error {
	all, err := s.List()
	if err != nil {
		return err
	}
	paths := []string{volume.Dir}
	for _, v := range all {
		paths = append(paths, v.Mount)
		if !v.Adopted() {
			paths = append(paths, v.Image)
		}
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find weir itself: %w", err)
	}
	for name, text := range map[string]string{volumesUnit: dropin.VolumesText(program, paths), limitsUnit: dropin.LimitsText(program)} {
		if err := durable.Replace(unitDir+name, unitDir+name+".new", text, 0o644); err != nil {
			return fmt.Errorf("volume up --at-boot: %w", err)
		}
	}
	return nil
}

// refreshBoot has the units know of other volumes, if there are units.
func (a *app) refreshBoot(ctx context.Context, s volume.Store) error {
	if _, err := os.Stat(unitDir + volumesUnit); err != nil {
		return nil
	}
	if err := writeBoot(s); err != nil {
		return err
	}
	conn, err := systemd.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Reload(ctx)
}
