package history

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/watch"
)

// names are the paths and targets of a crowd.
var names [][2]string

// crowd is a host of 2,000 limited groups, some of which read and write.
func crowd(n, moving int, r *rand.Rand) *watch.Snapshot {
	s := &watch.Snapshot{At: start.Add(time.Duration(n) * time.Second), Window: time.Second, Version: cgroupfs.V2, Watched: 2100, Pressure: &watch.Pressure{Some: 5, Known: true}}
	sda := blkdev.Number{Major: 254, Minor: 16}
	first := r.IntN(2000)
	for i := range 2000 {
		if len(names) <= i {
			names = append(names, [2]string{fmt.Sprintf("/kubepods.slice/kubepods-burstable.slice/cri-containerd-%016x%016x%016x%016x.scope", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()), fmt.Sprintf("pod:production/service-%d", i)})
		}
		g := &watch.Group{Path: names[i][0], Target: names[i][1],
			Pressure: &watch.Pressure{Known: true}, Memory: &watch.Memory{}}
		d := watch.Device{Number: sda, Node: "/dev/vdb", Limit: limit.Limit{WBPS: limit.PerSecond(10e6)}, Rates: &watch.Rates{}}
		if (i-first+2000)%2000 < moving {
			*d.Rates = watch.Rates{RBPS: r.Float64() * 5e7, WBPS: r.Float64() * 5e7, RIOPS: r.Float64() * 2000, WIOPS: r.Float64() * 2000}
			*g.Pressure = watch.Pressure{Some: r.Float64() * 100, Full: r.Float64() * 100, Known: true}
			*g.Memory = watch.Memory{Dirty: r.Uint64N(1e9), Writeback: r.Uint64N(1e7)}
		}
		g.Devices = []watch.Device{d}
		s.Groups = append(s.Groups, g)
	}
	return s
}

// The levels have room for what they promise.
func TestRoom(t *testing.T) {
	for i, c := range []struct {
		moving int
		past   time.Duration
	}{{2000, 10 * time.Minute}, {500, 24 * time.Hour}, {150, 30 * 24 * time.Hour}} {
		l := Levels()[i]
		w := &writer{ring: &ring{f: &memory{text: make([]byte, l.size())}, Level: l}, most: math.MaxInt}
		r := rand.New(rand.NewPCG(1, 2))
		const some = 30
		first := 0 // bytes of the first frame, which defines all series
		for n := range some + 1 {
			if err := w.append(start.Add(time.Duration(n)*time.Second), l.Step, pointsOf(crowd(n, c.moving, r), nil)); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				first = w.used
			}
		}
		each := (w.used - first) / some
		frames := (l.Block-first)/each + 1
		past := time.Duration(frames) * time.Duration(l.Blocks-1) * l.Step
		t.Logf("%d of 2,000 groups at a time: %d bytes a frame, the first one of a block %d; %d frames a block, %s in all", c.moving, each, first, frames, past)
		if past < c.past {
			t.Errorf("a step of %s goes back %s where %d groups move, %s were promised", l.Step, past, c.moving, c.past)
		}
	}
}

// BenchmarkAdd keeps a second of 2,000 limited groups, a tenth of which move.
func BenchmarkAdd(b *testing.B) {
	r, err := Record(b.TempDir(), Levels())
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(1, 2))
	snapshots := make([]*watch.Snapshot, 60)
	for n := range snapshots {
		snapshots[n] = crowd(n, 200, random)
	}
	n, used := 0, time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		s := *snapshots[n%len(snapshots)]
		s.At = start.Add(time.Duration(n) * time.Second)
		n++
		began := processor(b)
		if err := r.Add(&s); err != nil {
			b.Fatal(err)
		}
		used += processor(b) - began
	}
	b.ReportMetric(used.Seconds()*1000/float64(n), "cpu-ms/op")
}

// processor is the processor time that the process has used.
func processor(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// heapMost bounds what it takes to record 2,000 groups with limits: each series is kept once, for the three
// levels together.
const heapMost = 6 << 20

func TestMemory(t *testing.T) {
	r, err := Record(t.TempDir(), Levels())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	random := rand.New(rand.NewPCG(1, 2))
	crowd(0, 0, random) // its names are kept
	before := heap()
	for n := range 70 { // a frame of each level
		if err := r.Add(crowd(n, 20, random)); err != nil {
			t.Fatal(err)
		}
	}
	took := heap() - before
	t.Logf("%d KiB", took>>10)
	if took > heapMost {
		t.Errorf("to record 2,000 groups takes %d KiB, want at most %d", took>>10, heapMost>>10)
	}
	if err := r.Add(crowd(70, 20, random)); err != nil {
		t.Fatal(err)
	}
}

// heap is how much of the heap is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC() // what was cleaned up after the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
