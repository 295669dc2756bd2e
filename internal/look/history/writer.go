package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"
)

func sortBlocks(all []block) {
	slices.SortFunc(all, func(a, b block) int { return cmp.Compare(a.round, b.round) })
}

// A writer appends frames to a ring.
type writer struct {
	*ring
	block
	used    int // bytes of the block
	encoder *encoder
	last    time.Time // of its last frame; zero: it has none
	most    int       // of points that a frame in this block may have
	foreign bool      // the block has what this program would not write, and gets no more
}

// resume opens a ring to go on where its last record ends.
func resume(path string) (*writer, error) {
	r, err := open(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	if err := r.allocate(path); err != nil {
		return nil, errors.Join(err, r.f.Close())
	}
	return goOn(r)
}

// goOn is resume for an open ring.
func goOn(r *ring) (*writer, error) {
	w := &writer{ring: r, most: math.MaxInt}
	all, err := r.blocks()
	if err != nil || len(all) == 0 {
		return w, err
	}
	w.block = all[len(all)-1]
	w.encoder = newEncoder(w.began)
	d := newDecoder(w.began, nil)
	w.used, err = r.records(w.block, make([]byte, r.Block), func(text []byte) bool {
		f, err := d.step(text)
		if w.foreign = err != nil; err == nil {
			w.last = f.at
		}
		return err == nil
	})
	for _, of := range d.series {
		w.encoder.know(of)
	}
	if len(w.encoder.ids) != len(d.series) {
		w.foreign = true // two with one name: numbers would not follow each other
	}
	for _, p := range d.points() {
		w.encoder.next = append(w.encoder.next, w.encoder.ids[p.series])
	}
	w.encoder.take()
	if err == nil && !w.foreign { // else what follows is kept for the weir that wrote it
		w.foreign = w.clear() != nil
	}
	return w, err
}

// clear has nothing follow the last record of the block. A power cut can leave a record whose
// predecessor did not reach the disk; it is of this round too, and behind a new record of the
// predecessor's length it would be read as if it came after that.
func (w *writer) clear() error {
	if err := w.write(make([]byte, w.Block-w.used), w.block, w.used); err != nil {
		return err
	}
	return w.sync()
}

// append writes a frame. One that could not be written leaves no trace: the next one takes its
// place. When the clock was set back, another block begins: in each the frames are in the order of their
// times, by which readers leave blocks out.
func (w *writer) append(at time.Time, window time.Duration, points []point) error {
	if w.round > 0 && !w.foreign && !at.Before(w.last) {
		kept := points[:min(len(points), w.most)]
		text := w.encoder.frame(at, window, kept)
		if w.used+recordHead+len(text) <= w.Block {
			b := record(w.round, text)
			if err := w.write(b, w.block, w.used); err != nil {
				return err
			}
			w.used += len(b)
			w.last = at
			w.encoder.take()
			return nil
		}
	}
	return w.begin(at, window, points)
}

// begin writes a frame as the first of the next block. What has no room there is left out, from
// the end, and stays so in this block.
func (w *writer) begin(at time.Time, window time.Duration, points []point) error {
	next := block{round: w.round + 1, began: time.Unix(0, at.UnixNano())}
	e := newEncoder(next.began)
	text := e.frame(at, window, points)
	most := math.MaxInt
	for blockHead+recordHead+len(text) > w.Block/2 && len(points) > 0 { // half is for the frames after it
		most = len(points) / 2
		points = points[:most]
		text = e.frame(at, window, points)
	}
	b := append(next.head(), record(next.round, text)...)
	if err := w.write(b, next, 0); err != nil {
		return err
	}
	e.take()
	w.block, w.used, w.last, w.encoder, w.most, w.foreign = next, len(b), at, e, most, false
	return w.sync()
}

func (w *writer) write(b []byte, to block, at int) error {
	if _, err := w.f.WriteAt(b, w.offset(w.place(to.round))+int64(at)); err != nil {
		return fmt.Errorf("write %s: %w", w.name, err)
	}
	return nil
}

func (w *writer) sync() error {
	if err := w.f.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", w.name, err)
	}
	return nil
}
