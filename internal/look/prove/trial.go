package prove

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/kernel"
	"github.com/weir-io/weir/internal/look/explain"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// A Trial is a proof that can begin: it has places, rows, and what weir why says of them. Close
// ends it.
type Trial struct {
	// Notes say what will be measured and what not, in the order in which that was found.
	Notes []note.Note
	// Left is how many rows are left out because others tell more; Request.All has them all.
	Left int

	host    *host.Host
	request Request
	version cgroupfs.Version
	places  []Place
	tests   [][]Test // of each place; none: the target is observed, or a neighbour measured
	report  *why.Report
	closing []func() error
}

// matrixMost bounds how long all rows of a short proof take together.
const matrixMost = 28 * time.Second

// Prepare finds the places of a proof, plans its rows, and asks weir why about them, from the same
// facts. The trial is to be closed, on an error too: then it has the notes so far.
func Prepare(ctx context.Context, h *host.Host, r Request) (*Trial, error) {
	r.Hold = cmp.Or(r.Hold, limit.HoldAuto)
	t := &Trial{host: h, request: r}
	io, err := h.IO()
	if err != nil {
		return t, err
	}
	t.version = io.Version
	if r.Target != nil {
		t.version = r.Target.Group.Hierarchy().Version
		err = t.findTarget(ctx)
	} else {
		err = t.findOwn(ctx)
	}
	if err == nil && r.Observe == 0 && !r.Neighbour {
		err = t.plan()
	}
	if err == nil {
		err = t.ask(ctx)
	}
	return t, err
}

// Close gives back what the trial holds: directories of the target, or the scratch disk.
func (t *Trial) Close() error {
	var errs []error
	for _, c := range slices.Backward(t.closing) {
		errs = append(errs, c())
	}
	t.closing = nil
	return errors.Join(errs...)
}

func (t *Trial) notice(code, format string, args ...any) {
	t.Notes = append(t.Notes, note.Noticef(code, format, args...))
}

// plan lists the rows of each place.
func (t *Trial) plan() error {
	count := 0
	for i := range t.places {
		if err := t.markRooted(&t.places[i]); err != nil {
			return err
		}
		list, err := t.rowsOf(t.places[i])
		if err != nil {
			return err
		}
		t.tests, count = append(t.tests, list), count+len(list)
	}
	if count == 0 {
		return fault.With(&fault.Unsupported{Feature: "prove", Reason: "none of the limits can be tried this way"}, fault.Remedy{Do: fault.OtherKinds})
	}
	if !t.request.All {
		t.tests, t.Left = Choose(t.tests, RowsMost)
	}
	if t.request.Short {
		for i := range t.tests {
			t.tests[i] = Shorten(Brief(t.tests[i]), matrixMost/time.Duration(len(t.places)))
		}
	}
	return nil
}

// rowsOf plans the rows of one place, and notes what is left out.
func (t *Trial) rowsOf(p Place) ([]Test, error) {
	room, err := p.Room()
	if err != nil {
		return nil, err
	}
	logical, err := t.host.Devices().LogicalBlock(p.Device.Number)
	if err != nil {
		return nil, err
	}
	tests, notes := Plan(Options{Limit: p.Limit, Paths: t.request.Paths, For: t.request.Window, Logical: logical, Room: room, Drains: p.Drains(), Cached: p.Cached(), Entangled: p.Entangled()})
	for _, n := range notes {
		t.notice("not-tried", "%s", n)
	}
	tests, notes, err = p.Spare(tests)
	for _, n := range notes {
		t.notice("not-tried", "%s", n)
	}
	return tests, err
}

// markRooted notes what limits a place's writeback for all groups together.
func (t *Trial) markRooted(p *Place) error {
	h := p.Target.Hierarchy()
	if h == nil {
		var err error
		if h, err = t.host.FS.IO(p.Version); err != nil {
			return err
		}
	}
	group, err := t.host.Deciding().Group(h.Root(), true, []blkdev.Number{p.Device.Number})
	p.Rooted = group.Rooted(p.Device.Number, p.Limit)
	return err
}

// ask asks weir why about all places at once, as its command does, and gives each place the
// answer about it. Without named directories of a target, it asks about all disks that the target
// has mounted.
func (t *Trial) ask(ctx context.Context) error {
	sources, err := explain.Sources(t.host)
	if err != nil {
		return err
	}
	q := why.Question{Target: t.request.Target}
	if t.request.Target == nil {
		q.Hold = t.request.Hold
	}
	if byDisk := t.request.Target != nil && len(t.request.Dirs) == 0; !byDisk {
		for _, p := range t.places {
			spot := place.Spot{Asked: limit.Asked{On: p.Dir, Limit: p.Limit}}
			if p.Chain != nil {
				spot.Chain = *p.Chain
			}
			q.Places = append(q.Places, spot)
		}
	}
	facts, err := why.Gather(ctx, sources, q)
	if err != nil {
		return err
	}
	report := why.Judge(facts)
	t.report = &report
	for i := range t.places {
		at := slices.IndexFunc(report.Places, func(id why.PlaceID) bool {
			return slices.ContainsFunc(id.Devices, func(d why.DeviceID) bool { return d.Number == t.places[i].Device.Number })
		})
		if len(q.Places) > 0 {
			at = i
		}
		if at >= 0 {
			t.places[i].Explained = Explanation{Report: &report, Place: at}
		}
	}
	return nil
}

// Measure measures all rows. p says how loads are started; its Devices are the host's.
func (t *Trial) Measure(ctx context.Context, p Prover) (Proof, error) {
	p.Devices = t.host.Devices()
	proof := Proof{Target: t.request.Target, Version: t.version, Kernel: kernel.Running(), Observed: t.request.Observe > 0, Explained: t.report}
	began := time.Now()
	err := t.measure(ctx, p, &proof)
	proof.Took = time.Since(began)
	measured := t.places
	if t.request.Neighbour {
		measured = measured[:1]
	}
	for _, each := range measured {
		proof.Spots = append(proof.Spots, spotOf(each))
	}
	return proof, err
}

func (t *Trial) measure(ctx context.Context, p Prover, proof *Proof) (err error) {
	switch {
	case proof.Observed:
		members := func() ([]int, error) { return targets.Members(t.request.Target.Group) }
		proof.Rows, err = p.Observe(ctx, t.places, members, t.request.Observe)
		return err
	case t.request.Neighbour:
		logical, err := p.Devices.LogicalBlock(t.places[0].Device.Number)
		if err != nil {
			return err
		}
		var row Row
		proof.Phases, row, err = p.Neighbours(ctx, t.places[0], t.request.Window, logical)
		proof.Rows = []Row{row}
		return err
	}
	for i, each := range t.places {
		err := p.Run(ctx, each, t.tests[i], func(r Row) error {
			proof.Rows = append(proof.Rows, r)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
