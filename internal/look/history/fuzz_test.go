package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"math"
	"testing"
	"time"
)

// FuzzFrames reads any bytes as two frames of a block. What can be read can be written and read again.
func FuzzFrames(f *testing.F) {
	for n := range 3 {
		points := pointsOf(seen(n), nil)
		e := newEncoder(start)
		first := e.frame(seen(n).At, time.Second, points)
		e.take()
		f.Add(first, e.frame(seen(n+1).At, time.Second, pointsOf(seen(n+1), nil)))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		d := newDecoder(start, nil)
		for _, text := range [][]byte{first, second} {
			one, err := d.frame(text)
			if err != nil {
				return
			}
			one.snapshot()
			points := make([]point, 0, len(one.points))
			for _, p := range one.points {
				points = append(points, *p)
			}
			again, err := newDecoder(start, nil).frame(newEncoder(start).frame(one.at, one.window, points))
			if err != nil || !again.at.Equal(one.at) || again.window != one.window || len(again.points) > len(one.points) {
				t.Fatalf("%+v, %v: %+v", again, err, one)
			}
		}
	})
}

// FuzzFile reads a file of anything whose checksums are right, as somebody who may write it can make, and
// goes on recording in it. What was there is there still.
func FuzzFile(f *testing.F) {
	whole := Level{time.Second, blockLeast, 2}
	w := &writer{ring: whole.made(nil), most: math.MaxInt}
	for n := range 40 {
		if err := w.append(seen(n).At, time.Second, pointsOf(seen(n), nil)); err != nil {
			f.Fatal(err)
		}
		if n%13 == 0 {
			f.Add(unsealed(f, w.ring))
		}
	}
	f.Add(unsealed(f, w.ring))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := whole.made(text)
		w, err := goOn(r)
		if err != nil {
			t.Fatal(err)
		}
		ask(t, r)
		before, round := count(t, r), w.round
		if err := w.append(seen(1).At, time.Second, pointsOf(seen(1), nil)); err != nil {
			t.Fatal(err)
		}
		after := count(t, r)
		if after[seen(1).At.UnixMilli()] == 0 {
			t.Fatal("what was kept is not there")
		}
		before[seen(1).At.UnixMilli()]++
		if w.round == round && !maps.Equal(before, after) {
			t.Fatalf("%v were there, and now %v", before, after)
		}
	})
}

// count says how many frames of each time a ring has.
func count(t *testing.T, r *ring) map[int64]int {
	all := map[int64]int{}
	err := r.frames(t.Context(), time.Time{}, start.AddDate(1000, 0, 0), nil, func(f frame) bool {
		all[f.at.UnixMilli()]++
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// ask reads a ring as weir history and weir top --at do.
func ask(t *testing.T, r *ring) {
	reader := &Reader{rings: []*ring{r}}
	s, err := reader.At(t.Context(), start)
	if none := (*NothingError)(nil); err != nil && !errors.As(err, &none) {
		t.Fatal(err)
	}
	target := seen(1).Groups[0].Target
	if s != nil && len(s.Groups) > 0 {
		target = s.Groups[0].Target
	}
	series, err := reader.Series(t.Context(), target, start.Add(-time.Hour), start.Add(time.Hour))
	if none := (*NothingError)(nil); err != nil && !errors.As(err, &none) {
		t.Fatal(err)
	}
	for _, p := range series.Points {
		if p.At.Before(start.Add(-time.Hour)) || p.At.After(start.Add(time.Hour)) || p.Window < 0 {
			t.Fatalf("a point of %s over %s", p.At, p.Window)
		}
	}
}

// What follows in the text that made reads.
const (
	toBlock  = iota // a block of a round, when it began
	toRecord        // one of the block, and how long it is
	toTorn          // the same, with a wrong checksum
)

// made makes a ring of a text that says what is in it: any text makes one.
func (l Level) made(text []byte) *ring {
	m := &memory{text: append(l.head(), make([]byte, l.size()-headUsed)...)}
	r := &ring{f: m, name: "file", Level: l}
	b, at := block{round: 1, began: start}, blockHead
	for len(text) > 0 {
		what := text[0] % 3
		text = text[1:]
		if what == toBlock {
			if len(text) < 10 {
				break
			}
			b = block{uint64(text[0]) | uint64(text[1])<<56, time.Unix(0, int64(binary.LittleEndian.Uint64(text[2:])))}
			text, at = text[10:], blockHead
			copy(m.text[r.offset(r.place(max(b.round, 1))):], b.head())
			continue
		}
		size, n := binary.Uvarint(text)
		if n <= 0 {
			break
		}
		text = text[n:]
		size = min(size, uint64(len(text)))
		one := record(b.round, text[:size])
		if text = text[size:]; what == toTorn {
			one[4]++
		}
		if at+len(one) <= l.Block {
			at += copy(m.text[r.offset(r.place(max(b.round, 1)))+int64(at):], one)
		}
	}
	return r
}

// unsealed is the text that makes a ring.
func unsealed(f *testing.F, r *ring) (text []byte) {
	all, err := r.blocks()
	if err != nil {
		f.Fatal(err)
	}
	for _, b := range all {
		text = append(text, toBlock, byte(b.round), byte(b.round>>56))
		text = binary.LittleEndian.AppendUint64(text, uint64(b.began.UnixNano()))
		_, err := r.records(b, make([]byte, r.Block), func(one []byte) bool {
			text = append(binary.AppendUvarint(append(text, toRecord), uint64(len(one))), one...)
			return true
		})
		if err != nil {
			f.Fatal(err)
		}
	}
	if is := r.made(text).f.(*memory).text; !bytes.Equal(is[headSize:], r.f.(*memory).text[headSize:]) {
		f.Fatal("the text makes another file")
	}
	return text
}

// A memory is a file.
type memory struct{ text []byte }

func (m *memory) ReadAt(b []byte, at int64) (int, error)  { return copy(b, m.text[at:]), nil }
func (m *memory) WriteAt(b []byte, at int64) (int, error) { return copy(m.text[at:], b), nil }
func (m *memory) Sync() error                             { return nil }
func (m *memory) Close() error                            { return nil }
