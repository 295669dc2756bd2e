package web

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/history"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/planned"
	"github.com/weir-io/weir/internal/plans/planfile"
	"github.com/weir-io/weir/internal/targets"
)

var kernel = place.By{Mechanism: place.Throttle}

// device is one with a limit, and what is expected to hold buffered writes.
func aDevice(l limit.Limit, r watch.Rates, buffered place.By) watch.Device {
	d := watch.Device{Number: blkdev.Number{Major: 254, Minor: 16}, Node: "/dev/vdb", Counted: true, Rates: &r, Limit: l,
		Total: cgroupfs.Stat{ReadBytes: 12e9, WrittenBytes: 34e9, Reads: 1200, Writes: 3400}}
	if l.Bounds() {
		d.Expected = &place.Expected{Placed: place.Placed{Limit: l}, Expectation: place.Expectation{Direct: kernel, Sync: kernel, Mapped: kernel, Read: kernel, Buffered: buffered}}
	}
	return d
}

func pressed(some float64) *watch.Pressure {
	return &watch.Pressure{Some: some, Full: some / 2, Known: true}
}

func writeLimit(n uint64) limit.Limit { return limit.None.With(limit.WBPS, limit.PerSecond(n)) }

// aHost is a host in the middle of its work at a time: its figures wander.
func aHost(at time.Time) *watch.Snapshot {
	wave := func(period, by float64) float64 { return 1 + by*math.Sin(float64(at.Unix())*2*math.Pi/period) }
	s := &watch.Snapshot{At: at, Window: time.Second, Version: cgroupfs.V2, Watched: 212, Pressure: pressed(12 * wave(600, .4))}
	s.Disks = []watch.Disk{
		{Node: "/dev/vda", Rates: &watch.Rates{RBPS: 1.2e5, WBPS: 3.1e5}, Use: 3.4, Queue: .1},
		{Node: "/dev/vdb", Rates: &watch.Rates{RBPS: 31.2e6 * wave(300, .2), WBPS: 48e6 * wave(500, .1)}, Use: 87.4 * wave(400, .1), Queue: 4.25},
	}
	ahead := place.By{Mechanism: place.Writeback, Ahead: true, Why: "the writer runs ahead in memory until memory is full"}
	nothing := place.By{Why: "ext4 with data=journal charges its journal to the root group"}
	pg := aDevice(limit.None.With(limit.RBPS, limit.PerSecond(60e6)), watch.Rates{RBPS: 28.9e6 * wave(700, .5), WBPS: 37e6 * wave(900, .2), RIOPS: 1764, WIOPS: 903}, kernel)
	s.Groups = []*watch.Group{
		{Path: "/idle.slice", Target: "unit:idle.slice", Devices: []watch.Device{aDevice(writeLimit(5e6), watch.Rates{}, kernel)}, Pressure: pressed(0), Memory: &watch.Memory{}},
		{Path: "/kubepods.slice/kubepods-burstable.slice/pod1f0c", Target: "pod:ci/build-7", Owner: targets.Owner{Kind: "kubernetes"}, Pressure: pressed(0.2), Memory: &watch.Memory{Dirty: 3e6},
			Devices: []watch.Device{aDevice(writeLimit(10e6), watch.Rates{RBPS: 2.1e6, WBPS: 1e6 * wave(200, .9), RIOPS: 40, WIOPS: 8}, ahead)}},
		{Path: "/system.slice", Target: "unit:system.slice", Pressure: pressed(71), Memory: &watch.Memory{Dirty: 422e6},
			Devices: []watch.Device{aDevice(limit.Limit{}, watch.Rates{RBPS: 28.9e6, WBPS: 95e6, RIOPS: 900, WIOPS: 12345}, place.By{})}},
		{Path: "/system.slice/docker-0123456789ab.scope", Target: "docker:web", Owner: targets.Owner{Kind: "docker", Name: "0123456789ab"}, Pressure: pressed(71 * wave(350, .3)), Memory: &watch.Memory{Dirty: 12e6, Writeback: 2e6},
			Devices: []watch.Device{aDevice(writeLimit(10e6).With(limit.WIOPS, limit.PerSecond(500)), watch.Rates{RBPS: 8e5 * wave(90, 1), WBPS: min(10.02e6, 13e6*math.Abs(wave(900, 1)-.6)), RIOPS: 12, WIOPS: 78}, ahead)}},
		{Path: "/system.slice/docker-ba9876543210.scope", Target: "docker:legacy", Owner: targets.Owner{Kind: "docker", Name: "ba9876543210"}, Pressure: pressed(0.4), Memory: &watch.Memory{Dirty: 1.2e9},
			Devices: []watch.Device{aDevice(writeLimit(10e6), watch.Rates{WBPS: 48.1e6 * wave(450, .1), WIOPS: 391}, nothing)}},
		{Path: "/system.slice/postgresql.service", Target: "unit:postgresql.service", Owner: targets.Owner{Kind: "systemd", Name: "postgresql.service"}, Pressure: pressed(2.2), Memory: &watch.Memory{Dirty: 410e6}, Devices: []watch.Device{pg}},
		{Path: "/machine.slice/machine-qemu-1-db.scope", Target: "vm:db", Owner: targets.Owner{Kind: "libvirt"}, Pressure: pressed(9), Memory: &watch.Memory{Dirty: 1e6},
			Paced: &watch.Paced{WBPS: 50e6, Escapes: true}, Paused: &watch.Paused{Total: 12300 * time.Millisecond, Share: 31.4, Known: true}, Devices: []watch.Device{aDevice(writeLimit(50e6), watch.Rates{WBPS: 46e6, WIOPS: 700}, kernel)}},
	}
	return s
}

// A still source has what a test gives it.
type source struct {
	mu    sync.Mutex
	make  func(n int) *watch.Snapshot // the nth
	reads int
	last  *watch.Snapshot
	err   error
}

func (f *source) Newer(ctx context.Context, seen *watch.Snapshot, _ time.Duration) (*watch.Snapshot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	if f.last == nil || f.last == seen {
		f.last = f.make(f.reads)
		f.reads++
	}
	return f.last, ctx.Err()
}

func (f *source) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

func (f *source) fail(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = nil; text != "" {
		f.err = errors.New(text)
	}
}

// record makes a history of some time until now.
func record(t testing.TB, of time.Duration) (dir string) {
	t.Helper()
	dir = t.TempDir()
	r, err := history.Record(dir, []history.Level{{Step: time.Second, Block: 1 << 20, Blocks: 4}, {Step: 10 * time.Second, Block: 1 << 20, Blocks: 4}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Truncate(time.Second)
	for at := now.Add(-of); !at.After(now); at = at.Add(time.Second) {
		if err := r.Add(aHost(at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// aPage is a page of a source, until the end of the test.
func aPage(t testing.TB, o Options) *Page {
	t.Helper()
	if o.Source == nil {
		o.Source = &source{make: func(int) *watch.Snapshot { return aHost(time.Now()) }}
	}
	if o.Open == nil {
		dir := t.TempDir()
		if err := hosttest.Make(dir, "v2"); err != nil {
			t.Fatal(err)
		}
		o.Open = func() (*host.Host, error) { return host.Open(host.Options{Root: dir}) }
	}
	if o.Version == "" {
		o.Version = "1.2.3"
	}
	o.Name, o.Plans = "node-1", planned.NewNames(o.Open, planfile.Read)
	t.Cleanup(o.Plans.Close)
	p := New(o)
	t.Cleanup(p.Close)
	return p
}

func manyGroups(n int) *watch.Snapshot {
	s := aHost(time.Now())
	for i := range n {
		g := *s.Groups[3]
		g.Path, g.Target = fmt.Sprintf("/many/%d", i), fmt.Sprintf("docker:many-%d", i)
		s.Groups = append(s.Groups, &g)
	}
	return s
}
