package pacer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

// A pacer does not end for what it cannot take over: it says so, and tries again, until
// somebody lets the group go.
func TestWhatCannotBeTakenOver(t *testing.T) {
	h := cgrouptest.New(t, cgroupfs.V2, nil)
	dir := state.At(t.TempDir())
	lost := Job{Limited: Place{"nowhere", "/a"}, Devices: []blkdev.Number{{Major: 8}}, WBPS: 1}
	gone := lost
	gone.Limited = Place{"", "/gone"}
	for _, record := range []any{lost, gone, []string{"no job"}} {
		r, err := dir.New(recordKind, record)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
	}
	records := func() int {
		files, err := filepath.Glob(filepath.Join(dir.Path(), recordKind+".*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	s := &server{dir: dir, fs: h.FS, jobs: map[*paced]*held{}}
	s.adopt(func(Place) bool { return true })
	if n := records(); n != 2 {
		t.Errorf("%d records are left, want the one that is no job, and the one that cannot be paced", n)
	}
	for range 2 {
		jobs, _ := Paced(dir) // one record is no job
		if len(jobs) != 1 || !strings.HasPrefix(jobs[0].Lapsed, "no process is paused") {
			t.Errorf("the records say %v", jobs)
		}
		note := s.answer(ask{}).Note
		if !strings.Contains(note, "pace cgroup /a again: ") || len(s.orphans.places) != 1 {
			t.Errorf("%q; to be tried again: %v", note, s.orphans.places)
		}
		was := s.orphans.next
		s.tryOrphans(was)
		if s.orphans.next == was {
			t.Error("it is not tried again")
		}
	}
	if a := s.answer(ask{Remove: &lost.Limited}); len(s.orphans.places) > 0 {
		t.Errorf("it is tried for ever: %v", a)
	}
	s.tryOrphans(clockNow() + time.Hour)
	if _, err := os.Stat(dir.Path()); err != nil {
		t.Error(err)
	}
}

// Who asks is told that a pacer which was killed has held the group before.
func TestTakenOver(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	h.sleeper("/a")
	j := h.job()
	r, err := h.dir.New(recordKind, j)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Leave(); err != nil {
		t.Fatal(err)
	}
	s := h.server()
	for _, resumed := range []bool{true, false} {
		if resumed {
			s.adopt(func(Place) bool { return true })
		} else if a := s.answer(ask{Add: &j}); a.Error != "" {
			t.Fatal(a.Error)
		}
		if a := s.answer(ask{Seen: &j.Limited}); a.Seen == nil || a.Seen.Resumed != resumed {
			t.Errorf("%+v, want resumed: %t", a.Seen, resumed)
		}
		if a := s.answer(ask{Remove: &j.Limited}); a.Error != "" {
			t.Fatal(a.Error)
		}
	}
}
