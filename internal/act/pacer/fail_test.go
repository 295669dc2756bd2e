package pacer

import (
	"container/heap"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
)

// fakeCells are cells of a group /a that has children b and c, each with a cell. That of c
// cannot be stopped.
func fakeCells(t *testing.T) (h cgrouptest.Host, all *cells, b string) {
	t.Helper()
	h = cgrouptest.New(t, cgroupfs.V2, map[string]string{
		cgrouptest.V2Dir + "/a/cgroup.procs":      "",
		cgrouptest.V2Dir + "/a/b/x/cgroup.freeze": "0",
		cgrouptest.V2Dir + "/a/c/x/cgroup.procs":  "",
	})
	top := filepath.Join(h.Root, cgrouptest.V2Dir, "a")
	pipe := top + "/c/x/cgroup.freeze" // nobody can write at an offset there
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	all = &cells{fs: h.FS, limited: h.Group("/a"), name: "x", all: map[cgroupfs.Group]*cell{}, before: func() {}}
	all.tell = func(cgroupfs.Group) error { return nil }
	all.untell = all.tell
	for _, home := range []string{"/a/b", "/a/c"} {
		own := h.Group(home + "/x")
		brake, err := own.Brake()
		if err != nil {
			t.Fatal(err)
		}
		all.all[h.Group(home)] = &cell{own: own, brake: brake}
	}
	t.Cleanup(all.close)
	return h, all, top + "/b/x/cgroup.freeze"
}

func is(t *testing.T, file, want string) {
	t.Helper()
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v; want %q", file, got, err, want)
	}
}

// Of a stop that has failed half way nobody stays stopped.
func TestAStopThatFailsHalfWay(t *testing.T) {
	h, all, file := fakeCells(t)
	p := &paced{cells: *all, roster: roster{limited: h.Group("/a")}}
	err := p.set(true)
	if err == nil || p.stopped {
		t.Fatalf("stopped: %v, %v", p.stopped, err)
	}
	is(t, file, "1")
	s := &server{jobs: map[*paced]*held{p: {}}}
	heap.Push(&s.loop.groups, p)
	s.fail(p, err)
	is(t, file, "0")
	if len(s.jobs) != 1 {
		t.Error("the job is forgotten")
	}
}

// A group stays paced when another one than it is gone, and only then.
func TestFailOfWhatIsGone(t *testing.T) {
	h, _, _ := fakeCells(t)
	dir := state.At(t.TempDir())
	record, err := dir.New(recordKind, Job{})
	if err != nil {
		t.Fatal(err)
	}
	p := &paced{roster: roster{limited: h.Group("/a")}, meter: &written{}}
	s := &server{dir: dir, jobs: map[*paced]*held{p: {record: record}}}
	heap.Push(&s.loop.groups, p)
	s.fail(p, unix.ENOENT)
	if len(s.jobs) != 1 || len(s.loop.groups) != 1 {
		t.Error("the job is forgotten, and its group is there")
	}
	top := filepath.Join(h.Root, cgrouptest.V2Dir, "a")
	if err := os.Rename(top, top+"2"); err != nil {
		t.Fatal(err)
	}
	s.fail(p, unix.ENOENT)
	if jobs, err := Paced(dir); err != nil || len(jobs) > 0 || len(s.jobs)+len(s.loop.groups) > 0 {
		t.Errorf("the group is gone, and its job is there: %v, %v", jobs, err)
	}
}

// A home whose cell cannot be made is no reason to let the others go. It is told, and tried
// again.
func TestAHomeThatCannotBeStopped(t *testing.T) {
	h, all, file := fakeCells(t)
	delete(all.all, h.Group("/a/c"))
	dir := state.At(t.TempDir())
	record, err := dir.New(recordKind, Job{})
	if err != nil {
		t.Fatal(err)
	}
	p := &paced{cells: *all, roster: roster{limited: h.Group("/a"), name: "x"}}
	p.roster.places = []place{{group: h.Group("/a/d"), tasks: []int{1}}, {group: h.Group("/a/b")}}
	s := &server{dir: dir, jobs: map[*paced]*held{p: {record: record}}}
	now := clockNow()
	missed := func(want bool) {
		t.Helper()
		s.noted = 0
		s.noteMissed(now)
		jobs, err := Paced(dir)
		if err != nil || len(jobs) != 1 || strings.Contains(jobs[0].Missed, "processes of cgroup /a/d cannot be paused") != want {
			t.Errorf("%v, %v", jobs, err)
		}
	}
	if _, err := p.cells.gather(&p.roster, now); err != nil {
		t.Fatal(err)
	}
	missed(true)
	if err := p.set(true); err != nil || !p.stopped {
		t.Error(err)
	}
	is(t, file, "1")
	tried := p.cells.missed[h.Group("/a/d")].again
	for at, again := range map[time.Duration]bool{now + missAgain/2: false, now + missAgain: true} {
		if p.cells.move(h.Group("/a/d"), []int{1}, false, at); (p.cells.missed[h.Group("/a/d")].again != tried) != again {
			t.Errorf("tried again after %s: %v", at-now, !again)
		}
		p.cells.missed[h.Group("/a/d")] = miss{p.cells.missed[h.Group("/a/d")].why, tried}
	}
	p.cells.prune(tried + missKept + 1)
	missed(false)
}
