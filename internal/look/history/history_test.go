package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/state"
)

var start = time.Unix(1_700_000_000, 0)

// small levels turn over quickly.
func small() []Level {
	return []Level{{time.Second, 8 << 10, 4}, {10 * time.Second, 8 << 10, 4}, {time.Minute, 8 << 10, 4}}
}

// seen is what a watcher would have seen in the n-th second: docker:web writes n bytes and n
// thousandths of an operation under a limit, and some groups without one are busy in turn.
func seen(n int) *watch.Snapshot {
	s := &watch.Snapshot{At: start.Add(time.Duration(n) * time.Second), Window: time.Second, Version: cgroupfs.V1, Watched: 7,
		Pressure: &watch.Pressure{Some: 12.5, Full: 1.25, Known: true}}
	sda, sdb := blkdev.Number{Major: 8}, blkdev.Number{Major: 8, Minor: 16}
	s.Disks = []watch.Disk{{Number: sdb, Node: "/dev/sdb", Below: []blkdev.Number{sda, {Major: 9}}}, {Number: sda, Node: "/dev/sda", Rates: &watch.Rates{WBPS: 5}, Use: 5.25, Queue: 0.5}}
	s.Groups = []*watch.Group{{Path: "/idle", Target: "cgroup:/idle", Devices: []watch.Device{{Number: sda, Node: "/dev/sda", Counted: true, Rates: &watch.Rates{}}}}}
	if busy := n % 3; busy > 0 {
		s.Groups = append(s.Groups, &watch.Group{Path: fmt.Sprint("/turn", busy), Target: fmt.Sprint("unit:turn", busy),
			Devices: []watch.Device{{Number: sda, Node: "/dev/sda", Rates: &watch.Rates{RBPS: 30}}}})
	}
	s.Groups = append(s.Groups, &watch.Group{Path: "/web", Target: "docker:web", Memory: &watch.Memory{Dirty: 77, Writeback: 7}, Paced: &watch.Paced{WBPS: 99},
		Devices: []watch.Device{
			{Number: sda, Node: "/dev/sda", Limit: limit.None.With(limit.WBPS, limit.PerSecond(1000)), Rates: &watch.Rates{WBPS: float64(n), WIOPS: float64(n) / 1000}},
			{Number: sdb, Node: "/dev/sdb", Below: []blkdev.Number{sda, {Major: 9}}},
		}})
	return s
}

// kept is what is to be read of a snapshot.
func kept(s *watch.Snapshot) *watch.Snapshot {
	want := *s
	want.Groups = nil
	for _, g := range s.Groups {
		if sum, _ := g.Sum(); !g.Limited() && sum == (watch.Rates{}) {
			continue
		}
		one := *g
		one.Devices = nil
		for _, d := range g.Devices {
			d.Limit, d.Counted = d.Limit.Bound(), false
			if r := d.Rates; r != nil {
				d.Rates = &watch.Rates{RBPS: near(r.RBPS, 1), WBPS: near(r.WBPS, 1), RIOPS: near(r.RIOPS, 1000), WIOPS: near(r.WIOPS, 1000)}
			}
			one.Devices = append(one.Devices, d)
		}
		want.Groups = append(want.Groups, &one)
	}
	return &want
}

// near is what is kept of a value: TestPack says how near that is.
func near(v, unit float64) float64 { return float64(unpack(pack(whole(v, unit)))) / unit }

// unsynced is a file that is not brought to the disk: no test here cuts the power.
type unsynced struct{ file }

func (unsynced) Sync() error { return nil }

func record1(t *testing.T, dir string, levels []Level, from, to int) {
	t.Helper()
	r, err := Record(dir, levels)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range r.writers {
		w.f = unsynced{w.f}
	}
	for n := from; n < to; n++ {
		if err := r.Add(seen(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func reader(t *testing.T, dir string) *Reader {
	t.Helper()
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// all are the snapshots of a level.
func all(t *testing.T, r *ring) (s []*watch.Snapshot) {
	t.Helper()
	err := r.frames(t.Context(), time.Time{}, start.AddDate(100, 0, 0), nil, func(f frame) bool {
		s = append(s, f.snapshot())
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// times is what a watcher would have seen over a part of a second that ends so long after its beginning, in which all was so
// many times what it was over the second.
func times(s *watch.Snapshot, window, end time.Duration, n float64) *watch.Snapshot {
	one := *s
	one.At, one.Window = s.At.Add(end-time.Second), window
	rates := func(r *watch.Rates) *watch.Rates {
		if r == nil {
			return nil
		}
		return &watch.Rates{RBPS: n * r.RBPS, WBPS: n * r.WBPS, RIOPS: n * r.RIOPS, WIOPS: n * r.WIOPS}
	}
	one.Pressure = &watch.Pressure{Some: n * s.Pressure.Some, Full: n * s.Pressure.Full, Known: true}
	one.Disks, one.Groups = nil, nil
	for _, d := range s.Disks {
		d.Rates, d.Use, d.Queue = rates(d.Rates), n*d.Use, n*d.Queue
		one.Disks = append(one.Disks, d)
	}
	for _, g := range s.Groups {
		group := *g
		group.Devices = nil
		for _, d := range g.Devices {
			d.Rates = rates(d.Rates)
			group.Devices = append(group.Devices, d)
		}
		one.Groups = append(one.Groups, &group)
	}
	return &one
}

// What is kept is the same, whoever reads between two snapshots: a burst that a scrape ends is no peak of the second.
func TestReadingsBeside(t *testing.T) {
	const seconds = 50
	alone, beside := t.TempDir(), t.TempDir()
	record1(t, alone, small(), 0, seconds)
	r, err := Record(beside, small())
	if err != nil {
		t.Fatal(err)
	}
	for n := range seconds {
		s := seen(n)
		if n > 0 {
			r.Beside(times(s, time.Second/10, time.Second/10, 4))
			r.Beside(times(s, 3*time.Second/10, 4*time.Second/10, 0))
			r.Beside(times(s, 0, time.Second/2, 9)) // no window
			s = times(s, 6*time.Second/10, time.Second, 1)
		}
		if err := r.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for level := range small() {
		want, got := all(t, reader(t, alone).rings[level]), all(t, reader(t, beside).rings[level])
		if len(got) != len(want) || len(want) == 0 && level == 0 {
			t.Fatalf("level %d: %d points, want %d", level, len(got), len(want))
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("level %d, %d:\n%s\nwant\n%s", level, i, show(got[i]), show(want[i]))
			}
		}
	}
}

// What was kept is read as it was, also after weird was started again in between, and when the ring
// has turned over several times.
func TestWhatWasKeptIsRead(t *testing.T) {
	for _, seconds := range []int{1, 2, 50, 1200} {
		dir := t.TempDir()
		record1(t, dir, small(), 0, seconds/2)
		record1(t, dir, small(), seconds/2, seconds)
		got := all(t, reader(t, dir).rings[0])
		if len(got) != seconds && seconds < 100 || len(got) < 300 && seconds > 100 {
			t.Fatalf("%d of %d seconds", len(got), seconds)
		}
		for i, s := range got {
			if want := kept(seen(seconds - len(got) + i)); !reflect.DeepEqual(s, want) {
				t.Fatalf("%d of %d:\n%s\nwant\n%s", i, seconds, show(s), show(want))
			}
		}
		size := int64(0)
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			size += info.Size()
		}
		if size != Size(small()) {
			t.Errorf("%d bytes, %d were promised", size, Size(small()))
		}
	}
}

func show(s *watch.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%+v pressure %+v\n", *s, s.Pressure)
	for _, g := range s.Groups {
		fmt.Fprintf(&b, "%+v memory %+v paced %+v pressure %+v\n", *g, g.Memory, g.Paced, g.Pressure)
		for _, d := range g.Devices {
			fmt.Fprintf(&b, "  %+v rates %+v\n", d, d.Rates)
		}
	}
	return b.String()
}

// Coarser levels have the mean of each step: of a limited group over the time that it was there, of
// another one over the whole step.
func TestMeans(t *testing.T) {
	dir := t.TempDir()
	record1(t, dir, small(), 1, 601)
	r := reader(t, dir)
	for i, step := range []int{10, 60} {
		level := all(t, r.rings[i+1])
		if len(level) < 600/step-2 {
			t.Fatalf("%d steps of %d s", len(level), step)
		}
		for _, s := range level {
			last := int(s.At.Sub(start).Seconds())
			if s.At.Unix()%int64(step) != 0 {
				t.Fatalf("a step of %d s ends at %d", step, s.At.Unix())
			}
			n := int(s.Window.Seconds())
			if n != step && last >= step {
				t.Fatalf("a step of %d s has %d", step, n)
			}
			mean := 0.0
			for at := last - n + 1; at <= last; at++ {
				mean += float64(at) / float64(n)
			}
			for _, g := range s.Groups {
				switch g.Target {
				case "docker:web":
					if d := g.Devices[0]; math.Abs(d.Rates.WBPS-mean) > 1.02 || math.Abs(d.Rates.WIOPS-mean/1000) > 0.00102 || g.Devices[1].Rates != nil || g.Memory.Dirty != 77 {
						t.Fatalf("%s, want %v", show(s), mean)
					}
				default:
					if got := g.Devices[0].Rates.RBPS; n == step && (got < 9 || got > 12) { // a third of the time
						t.Fatalf("%s has %v", g.Target, got)
					}
				}
			}
		}
	}
}

// The answer to a question comes from the finest level that has it.
func TestQuestions(t *testing.T) {
	dir := t.TempDir()
	record1(t, dir, small(), 0, 4000)
	r := reader(t, dir)
	now := start.Add(4000 * time.Second)
	for _, c := range []struct {
		ago  time.Duration
		step time.Duration
	}{{time.Minute, time.Second}, {40 * time.Minute, 10 * time.Second}, {90 * time.Minute, 10 * time.Second}} {
		s, err := r.Series(t.Context(), "docker:web", now.Add(-c.ago), now)
		if err != nil || s.Step != c.step || s.Cgroup != "/web" || len(s.Points) < int(min(c.ago, 50*time.Minute)/c.step) {
			t.Errorf("%s ago: step %s, %d points, %v", c.ago, s.Step, len(s.Points), err)
		}
	}
	if s, err := r.Series(t.Context(), "cgroup:/web", now.Add(-time.Minute), now); err != nil || s.Target != "docker:web" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := r.Series(t.Context(), "docker:none", now.Add(-time.Minute), now); err == nil {
		t.Errorf("%+v", s)
	}
	for n, fine := range map[int]bool{3999: true, 1000: false} {
		s, err := r.At(t.Context(), start.Add(time.Duration(n)*time.Second))
		if err != nil || fine != (s.Window == time.Second) || fine && !reflect.DeepEqual(s, kept(seen(n))) || s.At.Before(start.Add(time.Duration(n)*time.Second)) {
			t.Errorf("at %d: %v, %v", n, s, err)
		}
	}
	if s, err := r.At(t.Context(), now.Add(time.Hour)); err == nil {
		t.Errorf("the future: %v", s)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("an empty directory has a history")
	}
}

func TestOneRecorder(t *testing.T) {
	dir := t.TempDir()
	r, err := Record(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Record(dir, small()); !errors.Is(err, state.ErrLocked) {
		t.Errorf("a second one: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	record1(t, dir, small(), 0, 1)
}

// Who reads while it is written sees what was kept before, and nothing else.
func TestReadWhileItIsWritten(t *testing.T) {
	dir := t.TempDir()
	r, err := Record(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Add(seen(0)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for n := 1; ctx.Err() == nil; n++ {
			if err := r.Add(seen(n)); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	read := 0
	for began := time.Now(); time.Since(began) < 300*time.Millisecond; {
		for _, s := range all(t, reader(t, dir).rings[0]) {
			if n := int(s.At.Sub(start).Seconds()); !reflect.DeepEqual(s, kept(seen(n))) {
				t.Fatalf("%d:\n%s", n, show(s))
			}
			read++
		}
	}
	stop()
	if err := <-ended; err != nil || read == 0 {
		t.Errorf("%v, %d read", err, read)
	}
}

// More groups than a block has room for: those that have room are kept, and the ring does not turn
// over with each frame.
func TestTooManyGroups(t *testing.T) {
	dir := t.TempDir()
	r, err := Record(dir, small())
	if err != nil {
		t.Fatal(err)
	}
	for n := range 30 {
		s := seen(n)
		for i := range 300 {
			g := *s.Groups[len(s.Groups)-1]
			g.Path = fmt.Sprintf("/z%03d", i)
			s.Groups = append(s.Groups, &g)
		}
		if err := r.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got := all(t, reader(t, dir).rings[0])
	if len(got) < 8 || len(got[0].Groups) < 20 {
		t.Errorf("%d frames of %d groups", len(got), len(got[0].Groups))
	}
}
