package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/internal/cgroupfs"
	"github.com/weir-io/weir/internal/cli"
	"github.com/weir-io/weir/internal/demo"
	"github.com/weir-io/weir/internal/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/prove"
	"github.com/weir-io/weir/internal/scratch"
	"github.com/weir-io/weir/internal/systemd"
)

// ownPlaces are where a new group is measured: a scratch disk, or the named directories.
func (a *app) ownPlaces(ctx context.Context, f *proveFlags) (places []prove.Place, closing func() error, err error) {
	version, err := a.want()
	if err != nil {
		return nil, nil, err
	}
	base := prove.Place{Host: a.launchHost(), Version: version}
	if f.on[0].On == "" {
		disk, place, err := a.scratchPlace(ctx, base, f)
		if err != nil {
			return nil, nil, err
		}
		return []prove.Place{place}, disk.Close, nil
	}
	for _, l := range f.on {
		place := base
		place.Dir, place.Limit = l.On, l.Limit
		if info, err := os.Stat(l.On); err != nil || !info.IsDir() {
			return nil, nil, cli.Usagef("prove --on %s: name a directory, where a file without a name can be made", l.On)
		}
		chain, err := blkdev.New(a.root).Resolve(ctx, l.On)
		if err != nil {
			return nil, nil, err
		}
		if err := stand(&place, chain); err != nil {
			return nil, nil, err
		}
		if err := a.decidePlace(&place, f.hold); err != nil {
			return nil, nil, err
		}
		places = append(places, place)
	}
	return places, func() error { return nil }, nil
}

// decidePlace decides how a new group is held, as weir run would.
func (a *app) decidePlace(at *prove.Place, how limit.Hold) error {
	group, _, err := at.Host.Plan(launch.Options{Command: "prove", Version: at.Version})
	if err != nil {
		return err
	}
	placed := place.Placed{Device: at.Device, Limit: at.Limit}
	if at.Chain != nil {
		placed.Chain = *at.Chain
	}
	decided, err := a.deciding().Decide(group, true, []place.Placed{placed}, how)
	at.Paced = decided.Paced != nil
	return err
}

// stand puts a place on the device that a chain ends at.
func stand(place *prove.Place, chain blkdev.Chain) error {
	if len(chain.Devices) != 1 {
		return &cgroupfs.Unsupported{Feature: "prove a limit in " + place.Dir, Reason: "it is on " + cli.Plural(len(chain.Devices), "device", "devices") + ", and weir can judge only one",
			Remedy: "name a directory on a file system with one device"}
	}
	place.Device, place.Chain = chain.Devices[0], &chain
	if m, ok := chain.FileSystem(); ok {
		place.FS = &m
	}
	return nil
}

// scratchBytes is the size of the scratch disk, a sparse file: what the largest rows
// use, twice, and what the file system needs.
const scratchBytes = 1200 << 20

func (a *app) scratchPlace(ctx context.Context, place prove.Place, f *proveFlags) (*scratch.Disk, prove.Place, error) {
	place.Dir, place.Limit, place.Sole = f.dir, f.on[0].Limit, true
	free, err := place.Room() // for the disk's file
	if err != nil {
		return nil, place, err
	}
	disk, err := scratch.New(ctx, f.dir, min(scratchBytes, max(256<<20, free*2)))
	if err != nil {
		return nil, place, err
	}
	place.Dir, place.FS = disk.Dir, &blkdev.Mount{FSType: "ext4"}
	if place.Device, err = blkdev.New(a.root).Device(ctx, disk.Device); err == nil {
		err = a.decidePlace(&place, f.hold)
	}
	if err != nil {
		return nil, place, errors.Join(err, disk.Close())
	}
	return disk, place, nil
}

func (a *app) launchHost() launch.Host {
	return launch.Host{FS: a.fs, State: a.state, Holder: a.holder(), SystemdRuns: systemd.Running(a.root)}
}

func (a *app) prover(progress *cli.Progress) prove.Prover {
	return prove.Prover{Devices: blkdev.New(a.root), Load: []string{"/proc/self/exe", demo.LoadArg}, Stderr: os.Stderr, Progress: progress.Show}
}

// proveRows measures every row of every place, and reports.
func (a *app) proveRows(ctx context.Context, doc report, places []prove.Place, f *proveFlags) error {
	var tests [][]prove.Test
	count := 0
	for i := range places {
		if err := a.markRooted(&places[i]); err != nil {
			return err
		}
		p := places[i]
		list, err := a.plan(p, f)
		if err != nil {
			return err
		}
		list, notes, err := p.Spare(list)
		if err != nil {
			return err
		}
		for _, n := range notes {
			a.out.Say("note: %s", n)
		}
		tests, count = append(tests, list), count+len(list)
	}
	if count == 0 {
		return &cgroupfs.Unsupported{Feature: "prove", Reason: "none of the limits can be tried this way", Remedy: "see the notes, and --paths"}
	}
	if !f.all {
		var left int
		if tests, left = prove.Choose(tests, prove.RowsMost); left > 0 {
			a.out.Say("note: %s more with --all", cli.Plural(left, "row", "rows"))
		}
	}
	var err error
	if doc.asked, err = a.ask(ctx, doc.target, places, f); err != nil {
		return err
	}
	progress := cli.NewProgress(os.Stderr)
	began := time.Now()
	for i, p := range places {
		if !f.asked {
			tests[i] = prove.Shorten(prove.Brief(tests[i]), proveAll/time.Duration(len(places)))
		}
		err := a.prover(progress).Run(ctx, p, tests[i], func(r prove.Row) error {
			doc.rows = append(doc.rows, r)
			return nil
		})
		progress.Clear()
		if err != nil {
			return err
		}
	}
	doc.took, doc.places = time.Since(began), places
	return a.reportProof(doc, f)
}

// markRooted notes what limits a place's writeback for all groups together.
func (a *app) markRooted(p *prove.Place) error {
	h := p.Target.Hierarchy()
	if h == nil {
		var err error
		if h, err = a.fs.IO(p.Version); err != nil {
			return err
		}
	}
	group, err := a.deciding().Group(h.Root(), true, []blkdev.Number{p.Device.Number})
	p.Rooted = group.Rooted(p.Device.Number, p.Limit)
	return err
}

func (a *app) plan(p prove.Place, f *proveFlags) ([]prove.Test, error) {
	room, err := p.Room()
	if err != nil {
		return nil, err
	}
	logical, err := blkdev.New(a.root).LogicalBlock(p.Device.Number)
	if err != nil {
		return nil, err
	}
	tests, notes := prove.Plan(prove.Options{Limit: p.Limit, Paths: f.wanted, For: f.window, Logical: logical, Room: room, Drains: p.Drains(), Cached: p.Cached(), Entangled: p.Entangled()})
	for _, n := range notes {
		a.out.Say("note: %s", n)
	}
	return tests, nil
}

// rates names the rates of a limit that are numbers: "write 10 MB/s, read 500 ops/s".
func rates(l limit.Limit) string {
	var parts []string
	for _, k := range limit.Keys {
		if _, bound := l.Get(k).Number(); bound {
			parts = append(parts, k.Direction()+" "+l.Get(k).Format(k))
		}
	}
	return strings.Join(parts, ", ")
}
