package prove

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/look/load"
)

// A Phase is what a victim got of a disk while a hog did its worst, or not.
type Phase struct {
	Name  string // "alone", "without the limit", "with the limit"
	Reads float64
	P50   time.Duration
	P99   time.Duration
	Max   time.Duration
	Hog   float64 // bytes or operations per second on the device; 0 if alone
}

const (
	victimBytes = 64 * mega
	hogBlock    = 128 << 10
	hogBytes    = 512 * mega
)

// Neighbours measures a reader of small blocks in random order, one at a time, on a disk where
// another process (the hog) does large I/O, 32 requests at once: alone, beside the hog without
// a limit, and beside the hog with the limit. The row is that of the limited hog.
func (p Prover) Neighbours(ctx context.Context, place Place, window time.Duration, logical int) (phases []Phase, row Row, err error) {
	victim := Test{Path: load.Direct, Key: limit.RIOPS, Rate: 1, Random: true, Block: max(page, logical), Size: victimBytes, Warm: warm, For: window}
	hog, err := hogOf(place, window)
	if err != nil {
		return nil, row, err
	}
	p.Progress("writing the data to read", 0)
	files := make(map[bool]*os.File) // the victim's, and the hog's if it reads
	for isHog, size := range map[bool]int64{false: victim.Size, true: hog.Size} {
		if isHog && !hog.Key.IsRead() {
			continue
		}
		f, err := load.Prepare(ctx, place.Dir, size)
		if err != nil {
			return nil, row, err
		}
		defer f.Close()
		files[isHog] = f
	}
	alone, err := p.victim(ctx, place, victim, "alone", files[false])
	if err != nil {
		return nil, row, err
	}
	phases = append(phases, alone)
	for _, limited := range []bool{false, true} {
		phase, r, err := p.beside(ctx, place, victim, hog, limited, files)
		if err != nil {
			return nil, row, err
		}
		phases, row = append(phases, phase), r
	}
	return phases, row, nil
}

// hogOf is the load of the hog: see hogRate.
func hogOf(place Place, window time.Duration) (Test, error) {
	room, err := place.Room()
	if err != nil {
		return Test{}, err
	}
	k, rate, bound := hogRate(place.Limit)
	if !bound {
		return Test{}, errors.New("neighbour: no limit for the load")
	}
	t := Test{Path: load.Async, Key: k, Rate: rate, Depth: asyncDepth, Block: hogBlock, Size: min(hogBytes, room) / hogBlock * hogBlock,
		Warm: time.Second, For: window + warm}
	if k.IsOps() {
		t.Random, t.Block = true, page
	}
	return t, nil
}

// hogRate is the rate that the hog tries: the first one that is a number, writes before reads.
func hogRate(l limit.Limit) (k limit.Key, rate uint64, bound bool) {
	for _, k = range []limit.Key{limit.WBPS, limit.RBPS, limit.WIOPS, limit.RIOPS} {
		if rate, bound = l.Get(k).Number(); bound {
			break
		}
	}
	return k, rate, bound
}

func (p Prover) beside(ctx context.Context, place Place, victim, hog Test, limited bool, files map[bool]*os.File) (phase Phase, row Row, err error) {
	name := "without the limit"
	if limited {
		name = "with the limit"
	}
	room, lift, done, err := place.enter(ctx, limited)
	if err != nil {
		return phase, row, err
	}
	type outcome struct {
		phase Phase
		err   error
	}
	got := make(chan outcome, 1)
	go func() {
		select { // the hog is warm, and the throttle's burst is over
		case <-time.After(hog.Warm):
		case <-ctx.Done():
		}
		phase, err := p.victim(ctx, place, victim, name, files[false])
		got <- outcome{phase, err}
	}()
	quietly := p
	quietly.Progress = func(string, float64) {}
	s := sampler{group: room.IO, device: place.Device.Number, devices: p.Devices, read: hog.Key.IsRead()}
	r, child, err := quietly.observed(ctx, place, s, room, hog, files[true])
	o := <-got
	err = errors.Join(err, o.err, lift())
	if child != nil {
		p.await(child, hog)
	}
	if err = errors.Join(err, done()); err != nil {
		return phase, row, err
	}
	row = rowOf(place, r)
	row.Name = "the limited process's " + hog.Key.Direction() + "s"
	o.phase.Hog = row.Writer.Rate
	return o.phase, row, ctx.Err()
}

// victim reads, in weir's own group.
func (p Prover) victim(ctx context.Context, place Place, t Test, name string, file *os.File) (Phase, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return Phase{}, err
	}
	defer out.Close()
	r := &run{test: t, began: now()}
	child, err := p.spawn(place, launch.Outside(), t, file, in)
	if err = errors.Join(err, in.Close()); err != nil {
		return Phase{}, err
	}
	named := p
	named.Progress = func(_ string, part float64) { p.Progress("reader "+name, part) }
	named.follow(ctx, child, out, r)
	if err := ctx.Err(); err != nil {
		return Phase{}, err
	}
	switch {
	case r.hung:
		return Phase{}, fmt.Errorf("neighbour: the reader %s did not end in %s", name, t.Warm+t.For+grace)
	case r.failed != nil:
		return Phase{}, fmt.Errorf("neighbour: the reader %s: %w", name, r.failed)
	}
	return Phase{Name: name, Reads: r.result.OpsPerSec(), P50: r.result.P50, P99: r.result.P99, Max: r.result.Max}, nil
}
