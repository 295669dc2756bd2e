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
	untried []Untried
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
	switch {
	case err != nil || r.Observe != 0:
	case r.Neighbour:
		t.planNeighbour()
	default:
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
	omitted := make([][]Omission, len(t.places))
	for i := range t.places {
		if err := t.markRooted(&t.places[i]); err != nil {
			return err
		}
		list, left, err := t.rowsOf(t.places[i])
		if err != nil {
			return err
		}
		t.tests, count = append(t.tests, list), count+len(list)
		omitted[i] = left
	}
	if count == 0 {
		return fault.With(&fault.Unsupported{Feature: "prove", Reason: "none of the limits can be tried this way"}, fault.Remedy{Do: fault.OtherKinds})
	}
	planned := t.tests
	if !t.request.All {
		t.tests, t.Left = Choose(planned, RowsMost)
	}
	for i, p := range t.places {
		t.untried = append(t.untried, p.untried(keysOf(t.tests[i]), func(k limit.Key) (string, fault.Do) {
			at := slices.IndexFunc(omitted[i], func(o Omission) bool { return o.Key == k })
			if at < 0 || slices.Contains(keysOf(planned[i]), k) {
				return "there is no time for a row of it", fault.AllRows
			}
			return omitted[i][at].Why, omitted[i][at].Do
		})...)
	}
	if t.request.Short {
		for i := range t.tests {
			t.tests[i] = Shorten(Brief(t.tests[i]), matrixMost/time.Duration(len(t.places)))
		}
	}
	return nil
}

// planNeighbour notes the limits that the row beside a neighbour does not try.
func (t *Trial) planNeighbour() {
	hog, _, _ := hogRate(t.places[0].Limit)
	t.untried = t.places[0].untried([]limit.Key{hog}, func(limit.Key) (string, fault.Do) {
		return "with a neighbour, weir measures one limit", fault.DropOther
	})
}

// rowsOf plans the rows of one place, and notes what is left out.
func (t *Trial) rowsOf(p Place) ([]Test, []Omission, error) {
	room, err := p.Room()
	if err != nil {
		return nil, nil, err
	}
	logical, err := t.host.Devices().LogicalBlock(p.Device.Number)
	if err != nil {
		return nil, nil, err
	}
	tests, omitted := Plan(Options{Limit: p.Limit, Paths: t.request.Paths, For: t.request.Window, Logical: logical, Room: room, Drains: p.Drains(), Cached: p.Cached(), Entangled: p.Entangled()})
	for _, o := range omitted {
		t.notice("not-tried", "%s", o)
	}
	for _, test := range tests {
		if test.Pace > 0 {
			t.notice("not-tried", "%s %s of %s: tried with %s/s, so that the writer does not overtake the writeback",
				test.Path, test.Key.Direction(), p.Limit.Get(test.Key).Format(test.Key), limit.FormatMeasured(float64(test.Pace)))
		}
	}
	tests, spared, err := p.Spare(tests)
	for _, o := range spared {
		t.Notes = append(t.Notes, note.Noticef("not-tried", "%s", o).With(fault.Remedy{Do: o.Do}))
	}
	return tests, append(omitted, spared...), err
}

// untried are the limits of a place that are not among those tried, with the reason for each.
func (p Place) untried(tried []limit.Key, why func(limit.Key) (string, fault.Do)) (all []Untried) {
	for _, k := range limit.Keys {
		if rate, bound := p.Limit.Get(k).Number(); bound && !slices.Contains(tried, k) {
			text, do := why(k)
			all = append(all, Untried{p.Device, k, rate, text, fault.Remedy{Do: do}})
		}
	}
	return all
}

func keysOf(tests []Test) (keys []limit.Key) {
	for _, t := range tests {
		keys = append(keys, t.Key)
	}
	return keys
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
	proof.Untried = t.untried
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
