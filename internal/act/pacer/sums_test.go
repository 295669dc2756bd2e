package pacer

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

// asked has a pacer's socket answer one question.
func asked(t *testing.T, answered func(ask) answer) Client {
	t.Helper()
	dir := state.At(t.TempDir())
	if err := os.MkdirAll(dir.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := listen(filepath.Join(dir.Path(), socketName))
	if err != nil {
		t.Fatal(err)
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			default:
			}
			files := a.poll(nil)
			if pollUntil(clockNow()+10*time.Millisecond, files) {
				a.serve(files, answered)
			}
		}
	}()
	t.Cleanup(func() {
		close(over)
		<-ended
		if len(a.all) != 0 {
			t.Errorf("%d askers are waited for", len(a.all))
		}
		a.close()
	})
	return Client{State: dir}
}

// The answer about many groups is larger than what a socket takes at once: all of it arrives.
func TestSumsOfManyGroups(t *testing.T) {
	many := make([]Sum, sumsMost-1)
	for i := range many {
		many[i] = Sum{Limited: Place{Path: fmt.Sprintf("/kubepods.slice/%s/%d", strings.Repeat("x", 200), i)}, Paused: time.Duration(i)}
	}
	c := asked(t, func(ask) answer { return answer{Sums: many} })
	got, err := c.Sums(10 * time.Second)
	if err != nil || len(got) != len(many) || got[len(got)-1].Limited != many[len(many)-1].Limited {
		t.Errorf("%d sums, %v", len(got), err)
	}
	// Of more groups, others would be missing in each answer.
	many = append(many, Sum{})
	if got, err := c.Sums(10 * time.Second); err == nil {
		t.Errorf("%d sums of more groups", len(got))
	}
}

// A pacer of an earlier weir does not know the question, and its answer is not that it paused nobody.
func TestSumsOfAnOlderPacer(t *testing.T) {
	c := asked(t, func(ask) answer { return answer{Note: "x"} })
	if got, err := c.Sums(10 * time.Second); err == nil {
		t.Errorf("%v", got)
	}
}

// An askedWatcher counts how often it is asked, and says what has escaped.
type askedWatcher struct {
	escape.Watcher
	asked   int
	escaped map[blkdev.Number]uint64
}

func (w *askedWatcher) Add(cgroupfs.Group, uint64) error { return nil }
func (w *askedWatcher) Remove(uint64) error              { return nil }
func (w *askedWatcher) Escaped(uint64) (map[blkdev.Number]uint64, error) {
	w.asked++
	return maps.Clone(w.escaped), nil
}

// The figures are counters: they fall neither when a folio that was counted whole is seen to be written in part,
// nor after a stall. BPF is not asked, which would go through all groups for each.
func TestSumsNeverFall(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	h.Write(cgrouptest.V2Dir+"/a/io.stat", "8:0 rbytes=0 wbytes=0 rios=0 wios=0 dbytes=0 dios=0\n")
	sda := blkdev.Number{Major: 8}
	w := &askedWatcher{escaped: map[blkdev.Number]uint64{}}
	s := h.server()
	s.escapes = programs[escape.Watcher]{asked: true, have: w}
	j := h.job()
	j.Count = CountEscaped
	m, err := newEscaped(j, h.Group("/a"), w, nil, clockNow())
	if err != nil {
		t.Fatal(err)
	}
	m.meter.On([]blkdev.Number{sda})
	p := &paced{meter: m, stopped: true, halted: clockNow() - time.Minute}
	s.jobs[p] = &held{job: j}
	last := Sum{Escaped: map[blkdev.Number]uint64{}}
	for i, c := range []struct {
		escaped uint64
		spare   float64
		want    uint64
	}{{0, 0, 0}, {1000, 0, 1000}, {1000, 900, 1000}, {1500, 900, 1000}, {2500, 900, 1600}} {
		if w.escaped[sda] = c.escaped; c.escaped == 0 {
			clear(w.escaped)
		}
		if _, _, err := m.meter.Look(); err != nil {
			t.Fatal(err)
		}
		m.folios.all = c.spare
		before := w.asked
		sums := s.answer(ask{Sums: true}).Sums
		if w.asked != before {
			t.Error("BPF is asked")
		}
		if len(sums) != 1 || sums[0].Escaped[sda] != c.want || sums[0].Paused < last.Paused || sums[0].Paused < time.Minute {
			t.Fatalf("%d: %+v after %+v, want %d bytes", i, sums, last, c.want)
		}
		last = sums[0]
		p.halted = clockNow() // as after a stall
	}
}

func (w *askedWatcher) Files(uint64, *cgroupfs.Hierarchy) ([]escape.File, error) { return nil, nil }
