package pacer

import (
	"errors"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/process"
)

// spares is a counter that has counted so much too much at each look.
type spares []float64

func (s *spares) Spare() (bytes float64, err error) {
	bytes, *s = (*s)[0], (*s)[1:]
	return bytes, nil
}

func (s *spares) Before(float64) {}

func (s *spares) Close() error { return nil }

// What is counted at each look, after the folios counted whole at first.
func TestFolios(t *testing.T) {
	const page, folio = 4096, 1 << 20
	calls := func(n uint64, dirtied uint64) process.IO {
		return process.IO{WriteBytes: dirtied, WChar: n * page, SysCW: n}
	}
	for _, c := range []struct {
		name  string
		first process.IO // before there is a count
		spare spares
		looks []process.IO
		want  []float64 // the first is what is taken back
	}{
		{"parts of folios, each once", calls(64, 64*folio), spares{8*folio - 8*page, folio - page},
			[]process.IO{calls(8, 8*folio), calls(1, folio)}, []float64{64*folio - 128*page, 8 * page, page}},
		{"the rest of folios that are dirty", calls(64, 64*folio), spares{8*folio - 8*page, -8 * page},
			[]process.IO{calls(8, 8*folio), calls(8, 0)}, []float64{64*folio - 128*page, 8 * page, 8 * page}},
		{"a mapping", process.IO{WriteBytes: 64 * folio}, spares{0, 0},
			[]process.IO{{WriteBytes: folio}, {WriteBytes: folio}}, []float64{64 * folio, folio, folio + 64*folio}},
		{"half of it is in a mapping", process.IO{WriteBytes: 64 * folio}, spares{folio, folio / 2},
			[]process.IO{{WriteBytes: 2 * folio}, {WriteBytes: folio}}, []float64{64 * folio, folio, folio/2 + 32*folio}},
		{"a call that has not returned", calls(64, 64*folio), spares{0, -64*folio + 64*page, 0},
			[]process.IO{{WriteBytes: folio}, {WChar: 65*folio - 64*page, SysCW: 1}, {}}, []float64{64*folio - 128*page, folio, 64*folio - 64*page, 0}},
		{"a folio that is counted a moment later", calls(64, 64*folio), spares{9*folio - 9*page, 0},
			[]process.IO{calls(8, 8*folio), calls(1, folio)}, []float64{64*folio - 128*page, 0, 9 * page}},
		{"folios of a process that nobody has counted", calls(64, 64*folio), spares{8*folio - 8*page, 8*folio - 8*page, 0, 0},
			[]process.IO{calls(8, 8*folio), {}, {}, {WriteBytes: 8 * folio, WChar: 8 * folio, SysCW: 1}}, []float64{64*folio - 128*page, 8 * page, 0, 0, 8 * folio}},
		{"nothing for a while", process.IO{WriteBytes: 64 * folio}, spares{0, 0, 0, 0},
			[]process.IO{{}, {}, {WriteBytes: folio}, {}}, []float64{64 * folio, 0, 0, folio, 64 * folio}},
		{"parts of folios that are cut off", calls(64, 64*folio), spares{8*folio - 8*page, 0, 0},
			[]process.IO{calls(8, 8*folio), {CancelledWriteBytes: 8 * folio}, {CancelledWriteBytes: 64 * folio}}, []float64{64*folio - 128*page, 8 * page, -8 * page, -128 * page}},
	} {
		f := folios{load: func() (Parts, error) { return nil, nil }}
		if got := f.written(c.first, 0); got != float64(c.first.WriteBytes) {
			t.Errorf("%s: %.0f counted before it is known, want all %d", c.name, got, c.first.WriteBytes)
		}
		if !f.doubts(1e9, 0) {
			t.Errorf("%s: there is no doubt", c.name)
		}
		back, _ := f.start(0, func(Parts) (Counter, error) { return &spares{}, nil })
		f.count = &c.spare
		got := []float64{back}
		for i, more := range c.looks {
			got = append(got, f.written(more, time.Duration(i+1)*callFor))
		}
		for i := range c.want {
			if got[i] != c.want[i] {
				t.Errorf("%s: %.0f, want %.0f", c.name, got, c.want)
				break
			}
		}
	}
}

// What nothing has told about for a second was written.
func TestADoubtEnds(t *testing.T) {
	f := folios{load: func() (Parts, error) { return nil, nil }}
	f.written(process.IO{WriteBytes: 8 << 20}, 0)
	if _, err := f.start(0, func(Parts) (Counter, error) { return &spares{}, nil }); err != nil {
		t.Fatal(err)
	}
	f.count = &spares{0, 0, 0}
	for _, step := range []struct {
		at   time.Duration
		want float64
	}{{time.Second / 2, 0}, {time.Second, 8 << 20}, {2 * time.Second, 0}} {
		if got := f.written(process.IO{}, step.at); got != step.want {
			t.Errorf("after %s: %.0f, want %.0f", step.at, got, step.want)
		}
	}
}

// Where nothing can tell, folios count whole; and what calls explain is no reason to ask.
func TestFoliosThatNobodyTells(t *testing.T) {
	f := folios{load: func() (Parts, error) { return nil, errors.New("no BPF") }}
	for range 100 {
		if f.written(process.IO{WriteBytes: 1 << 20, WChar: 1 << 20, SysCW: 1}, 0); f.doubts(1e9, 0) {
			t.Fatal("what was written by calls is in doubt")
		}
	}
	const all = 64 << 20
	if got := f.written(process.IO{WriteBytes: all}, 0); got != all {
		t.Errorf("%.0f counted, want %d", got, all)
	}
	if back, err := f.start(0, nil); err != nil || back != 0 || f.doubts(1e9, 0) {
		t.Errorf("%.0f taken back; in doubt again: %t", back, f.doubts(1e9, 0))
	}
	if got := f.written(process.IO{WriteBytes: all}, 0); got != all {
		t.Errorf("%.0f counted, want %d", got, all)
	}
}

// A low limit is told sooner: one folio of it is seconds.
func TestDoubts(t *testing.T) {
	for rate, excess := range map[float64]uint64{2e5: 256 << 10, 1e7: 1e6, 1e9: 4 << 20} {
		f := folios{load: func() (Parts, error) { return nil, nil }}
		if f.written(process.IO{WriteBytes: excess - 1}, 0); f.doubts(rate, 0) {
			t.Errorf("%.0f bytes/s: in doubt for less than %d bytes", rate, excess)
		}
		if f.written(process.IO{WriteBytes: 1}, 0); !f.doubts(rate, 0) {
			t.Errorf("%.0f bytes/s: not in doubt for %d bytes", rate, excess)
		}
		f = folios{load: f.load}
		if f.written(process.IO{WChar: excess, SysCW: 1}, 0); !f.doubts(rate, 0) {
			t.Errorf("%.0f bytes/s: not in doubt for %d bytes that made nothing dirty", rate, excess)
		}
	}
}

// A group waits for that which tells, but not for long. What it writes after that is in doubt too
// when it is told.
func TestADoubtWaits(t *testing.T) {
	loading := errLoading
	f := folios{load: func() (Parts, error) { return nil, loading }}
	f.written(process.IO{WriteBytes: 8 << 20}, 0)
	if !f.doubts(1e9, 0) || !f.doubts(1e9, toldMost-1) {
		t.Error("it does not wait")
	}
	if _, err := f.start(0, nil); !errors.Is(err, errLoading) {
		t.Errorf("it is told %v, want that it cannot be told yet", err)
	}
	if f.doubts(1e9, toldMost) {
		t.Error("it waits for too long")
	}
	f.written(process.IO{WriteBytes: 1 << 20}, toldMost)
	loading = nil
	if !f.doubts(1e9, 2*toldMost) {
		t.Error("it is not told when it can be")
	}
	back, err := f.start(2*toldMost, func(Parts) (Counter, error) { return &spares{}, nil })
	if err != nil || back != 9<<20 {
		t.Errorf("%.0f are taken back (%v), want %d", back, err, 9<<20)
	}
}

// The rest of folios that were written in part is written once the programs count: each byte of
// it counts once, and none is in doubt any more.
func TestTheRestOfADoubt(t *testing.T) {
	const page, folio, some = 4096, 1 << 20, 50
	const rest = some * (folio - page)
	begin := func(Parts) (Counter, error) { return &spares{}, nil }
	f := folios{load: func() (Parts, error) { return nil, nil }}
	total := f.written(process.IO{WriteBytes: some * folio, WChar: some * page, SysCW: some}, 0)
	back, err := f.start(0, begin)
	if err != nil {
		t.Fatal(err)
	}
	total -= back
	f.count = &spares{-rest, 0, 0}
	total += f.written(process.IO{WChar: rest, SysCW: 1}, time.Millisecond)
	for _, at := range []time.Duration{doubtFor / 2, 2 * doubtFor} {
		total += f.written(process.IO{}, at)
	}
	if least, most := float64(some*folio), float64(some*(folio+callMost)); total < least || total > most {
		t.Errorf("%.0f bytes count, want %.0f to %.0f", total, least, most)
	}
	if f.all > some*callMost {
		t.Errorf("%.0f bytes are said not to have been written", f.all)
	}

	// It was written before the programs counted.
	f = folios{load: func() (Parts, error) { return nil, nil }}
	f.written(process.IO{WriteBytes: some * folio, WChar: some * page, SysCW: some}, 0)
	f.written(process.IO{WChar: rest, SysCW: 1}, 0)
	if back, err := f.start(0, begin); err != nil || back != 0 {
		t.Errorf("%.0f are taken back of what was written (%v)", back, err)
	}
}
