package history

import (
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

// FuzzFile reads a file of any bytes, and goes on recording in it.
func FuzzFile(f *testing.F) {
	l := Level{time.Second, blockLeast, 2}
	good := l.head()
	w := &writer{ring: &ring{f: &memory{text: append(good, make([]byte, l.size()-headUsed)...)}, Level: l}, most: math.MaxInt}
	for n := range 40 {
		if err := w.append(seen(n).At, time.Second, pointsOf(seen(n), nil)); err != nil {
			f.Fatal(err)
		}
	}
	f.Add(w.f.(*memory).text)
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := levelOf("file", text[:min(len(text), headUsed)])
		if err != nil || l.size() > 1<<16 {
			return
		}
		whole := make([]byte, l.size())
		copy(whole, text)
		w, err := goOn(&ring{f: &memory{text: whole}, Level: l})
		if err != nil {
			t.Fatal(err)
		}
		before := 0
		count := func(frame) bool { before++; return true }
		if err = w.frames(t.Context(), time.Time{}, start.AddDate(1000, 0, 0), nil, count); err != nil {
			t.Fatal(err)
		}
		if err := w.append(seen(1).At, time.Second, pointsOf(seen(1), nil)); err != nil {
			t.Fatal(err)
		}
		found := false
		err = w.frames(t.Context(), time.Time{}, start.AddDate(1000, 0, 0), nil, func(f frame) bool {
			found = found || f.at.Equal(seen(1).At)
			return true
		})
		if err != nil || !found {
			t.Fatalf("what was kept is not there: %v (%d before)", err, before)
		}
	})
}

// A memory is a file.
type memory struct{ text []byte }

func (m *memory) ReadAt(b []byte, at int64) (int, error)  { return copy(b, m.text[at:]), nil }
func (m *memory) WriteAt(b []byte, at int64) (int, error) { return copy(m.text[at:], b), nil }
func (m *memory) Sync() error                             { return nil }
func (m *memory) Close() error                            { return nil }
