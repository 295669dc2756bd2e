package pacer

import (
	"container/heap"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

// waits is a pacer one of whose groups, /a, has gone, and whose limit is kept in a file.
func waits(t *testing.T) (s *server, top, kept string) {
	t.Helper()
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{cgrouptest.V2Dir + "/cgroup.controllers": "io memory\n",
		cgrouptest.V2Dir + "/cgroup.subtree_control": "io\n", cgrouptest.V2Dir + "/a/cgroup.procs": ""})
	top, kept = filepath.Join(h.Root, cgrouptest.V2Dir, "a"), filepath.Join(t.TempDir(), "50-IOWriteBandwidthMax.conf")
	if err := os.WriteFile(kept, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := state.At(t.TempDir())
	j := Job{Limited: Place{"", "/a"}, Devices: []blkdev.Number{{Major: 8}}, WBPS: 5, KeptIn: []string{kept}}
	record, err := dir.New(recordKind, j)
	if err != nil {
		t.Fatal(err)
	}
	p := &paced{roster: roster{limited: h.Group("/a")}, meter: &written{}}
	if err := p.roster.same(); err != nil { // which notes what group it is
		t.Fatal(err)
	}
	s = &server{dir: dir, fs: h.FS, jobs: map[*paced]*held{p: {job: j, record: record}}}
	heap.Push(&s.loop.groups, p)
	if err := os.Rename(top, top+"2"); err != nil {
		t.Fatal(err)
	}
	s.fail(p, os.ErrNotExist)
	return s, top, kept
}

// onRecord is the one job on record; nil: there is none.
func onRecord(t *testing.T, s *server) *Job {
	t.Helper()
	jobs, err := Paced(s.dir)
	if err != nil || len(jobs) > 1 {
		t.Fatalf("%v, %v", jobs, err)
	}
	if len(jobs) == 0 {
		return nil
	}
	return &jobs[0]
}

// A job whose group is gone waits for the next of its name as long as its limit is kept, and its
// record says meanwhile that nobody holds anything.
func TestAJobWaitsForItsNextGroup(t *testing.T) {
	s, _, kept := waits(t)
	if j := onRecord(t, s); j == nil || j.Lapsed == "" || len(s.jobs)+len(s.loop.groups) > 0 || len(s.waiting) != 1 {
		t.Fatalf("%+v on record, %d jobs, %d waiting", j, len(s.jobs), len(s.waiting))
	}
	now := clockNow()
	s.tryWaiting(now)
	if onRecord(t, s) == nil {
		t.Fatal("it is forgotten at once")
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	s.tryWaiting(now + waitAgain)
	if j := onRecord(t, s); j != nil || len(s.waiting) > 0 {
		t.Errorf("nobody keeps the limit any more, and it waits: %+v", j)
	}
}

// A group of that name that gets no rule is not the job's.
func TestAJobLeavesAGroupWithoutARule(t *testing.T) {
	s, top, _ := waits(t)
	if err := os.Rename(top+"2", top); err != nil {
		t.Fatal(err)
	}
	now := clockNow() + waitAgain
	for at := now; at < now+waitMost; at += waitMost / 4 {
		if s.tryWaiting(at); onRecord(t, s) == nil {
			t.Fatalf("it is forgotten %s after its group has come", at-now)
		}
	}
	s.tryWaiting(now + waitMost + time.Millisecond)
	if j := onRecord(t, s); j != nil || len(s.waiting) > 0 {
		t.Errorf("its limit is gone, and it waits: %+v", j)
	}
}

// Who sets a limit anew, or clears it, ends the wait.
func TestRemoveEndsAWait(t *testing.T) {
	s, _, _ := waits(t)
	if a := s.answer(ask{Remove: &Place{"", "/a"}}); a.Error != "" || onRecord(t, s) != nil || len(s.waiting) > 0 {
		t.Errorf("%+v, %+v is left", a, onRecord(t, s))
	}
}
