package pacer

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// What has escaped is not taken for all of it if the pacer has begun to count anew, or sees nothing
// any more. A sum that falls because it was of parts of folios is no such thing.
func TestWatcherOfAnotherPacer(t *testing.T) {
	sda := blkdev.Number{Major: 8}
	now := Seen{Told: true, Began: time.Second, Escaped: map[blkdev.Number]uint64{sda: 1000}, Files: []escape.File{{Path: "/f"}}}
	told := now
	w := asked(t, func(ask) answer { return answer{Seen: &told} }).Watcher(Place{Path: "/a"})
	if err := w.Add(cgroupfs.Group{}, 0); err != nil {
		t.Fatal(err)
	}
	anew, blind, less := now, Seen{Began: time.Second}, now
	anew.Began, anew.Escaped = 2*time.Second, map[blkdev.Number]uint64{sda: 10}
	less.Escaped = map[blkdev.Number]uint64{sda: 900}
	for name, c := range map[string]struct {
		seen  Seen
		known bool
	}{"the same": {now, true}, "less": {less, true}, "another": {anew, false}, "one without BPF": {blind, false}} {
		told = c.seen
		escaped, err := w.Escaped(0)
		files, filesErr := w.Files(0, nil)
		if (err == nil) != c.known || (filesErr == nil) != c.known || escaped[sda] != 0 && !c.known || c.known && (escaped[sda] != c.seen.Escaped[sda] || len(files) != 1) {
			t.Errorf("%s: %v, %v, %v, %v", name, escaped, err, files, filesErr)
		}
		if w.Anew(c.seen) != (name == "another") {
			t.Errorf("%s: anew: %t", name, w.Anew(c.seen))
		}
	}
	told = blind
	if err := w.Add(cgroupfs.Group{}, 0); err == nil {
		t.Error("a pacer without BPF is watched")
	}
}

// Each change of a group's limits makes the pacer count what escapes from nothing, and so does another
// pacer: Seen tells when that was. How often the group was stopped stays known.
func TestSeenSaysSinceWhen(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	h.sleeper("/a")
	h.Write(cgrouptest.V2Dir+"/a/io.stat", "8:0 rbytes=0 wbytes=0 rios=0 wios=0 dbytes=0 dios=0\n")
	s := h.server()
	s.escapes = programs[escape.Watcher]{asked: true, have: &askedWatcher{escaped: map[blkdev.Number]uint64{}}}
	j := h.job()
	j.Count = CountEscaped
	began := map[time.Duration]bool{}
	for i := range uint64(2) {
		if a := s.answer(ask{Add: &j}); a.Error != "" {
			t.Fatal(a.Error)
		}
		if p := s.of(j.Limited); p.stops != 3*i {
			t.Errorf("stopped %d times, want %d", p.stops, 3*i)
		} else {
			p.stops = 3
		}
		for range 2 {
			m := s.of(j.Limited).meter.(*escaped)
			a := s.answer(ask{Seen: &j.Limited})
			if a.Seen == nil || a.Seen.Began != m.began || m.began == 0 {
				t.Fatalf("%+v (%s), began at %s", a.Seen, a.Error, m.began)
			}
			began[a.Seen.Began] = true
		}
	}
	if len(began) != 2 {
		t.Errorf("it began at %v, want two times", began)
	}
}
