package prove

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/act/scratch"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/place"
)

// findOwn finds where groups that weir makes are measured: on a scratch disk, or in the directories
// that were asked for.
func (t *Trial) findOwn(ctx context.Context) error {
	base := Place{Host: t.host.Launch(), Version: t.request.Version}
	if t.request.Asked[0].On == "" {
		return t.makeScratch(ctx, base)
	}
	for _, a := range t.request.Asked {
		at := base
		at.Dir, at.Limit = a.On, a.Limit
		if err := load.CheckDir(a.On); err != nil {
			return err
		}
		chain, err := t.host.Devices().Resolve(ctx, a.On)
		if err != nil {
			return err
		}
		if err := at.stand(chain); err != nil {
			return err
		}
		if err := t.decide(&at); err != nil {
			return err
		}
		t.places = append(t.places, at)
	}
	return nil
}

// stand puts a place on the device that a chain ends at.
func (p *Place) stand(chain blkdev.Chain) error {
	if n := len(chain.Devices); n != 1 {
		return &fault.Unsupported{Feature: "prove a limit in " + p.Dir, Reason: fmt.Sprintf("it is on %d devices, and weir can judge only one", n),
			Remedy: "name a directory on a file system with one device"}
	}
	p.Device, p.Chain = chain.Devices[0], &chain
	if m, ok := chain.FileSystem(); ok {
		p.FS = &m
	}
	return nil
}

// decide decides how a new group is held, as weir run would.
func (t *Trial) decide(at *Place) error {
	group, _, err := at.Host.Plan(launch.Options{Command: "prove", Version: at.Version})
	if err != nil {
		return err
	}
	placed := place.Placed{Device: at.Device, Limit: at.Limit}
	if at.Chain != nil {
		placed.Chain = *at.Chain
	}
	decided, err := t.host.Deciding().Decide(group, true, []place.Placed{placed}, t.request.Hold)
	at.Paced = decided.Paced != nil
	return err
}

// scratchBytes is the size of the scratch disk, a sparse file: what the largest rows
// use, twice, and what the file system needs.
const scratchBytes = 1200 << 20

// makeScratch makes the scratch disk, which lasts as long as the trial.
func (t *Trial) makeScratch(ctx context.Context, at Place) error {
	at.Dir, at.Limit, at.Sole = t.request.Scratch, t.request.Asked[0].Limit, true
	free, err := at.Room() // for the disk's file
	if err != nil {
		return err
	}
	disk, err := scratch.New(ctx, t.request.Scratch, min(scratchBytes, max(256<<20, free*2)))
	if err != nil {
		return err
	}
	at.Dir, at.FS = disk.Dir, &blkdev.Mount{FSType: "ext4"}
	if at.Device, err = t.host.Devices().Device(ctx, disk.Device); err == nil {
		err = t.decide(&at)
	}
	if err != nil {
		return errors.Join(err, disk.Close())
	}
	t.closing = append(t.closing, disk.Close)
	t.places = append(t.places, at)
	return nil
}
