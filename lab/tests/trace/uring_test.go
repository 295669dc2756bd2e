package trace_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/uring"
)

// askFor has io_uring do a job's I/O. Of linked requests each batch is a chain, and of silent
// ones the last of each has an answer.
func (j job) askFor(d *done, fd int, buf []byte) (err error) {
	flags := uint32(0)
	if j.Polled {
		flags = uring.Polled
	}
	ring, err := uring.New(j.Uring, flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ring.Close()) }()
	if j.First && j.Polled { // the kernel's thread, which is never idle, is not to be in real time
		if err := first(); err != nil {
			return err
		}
	}
	ask := func(t *timed, requests ...uring.Request) error {
		took, err := ring.Do(requests...)
		t.add(took, len(requests))
		return err
	}
	opcode, of := uint8(uring.Write), &d.Write
	if j.Read {
		opcode, of = uring.Read, &d.Read
	}
	blocks := j.Size / int64(j.Block)
	for n, began := int64(0), time.Now(); time.Since(began) < j.For; {
		var requests []uring.Request
		for range j.Uring {
			requests = append(requests, uring.Request{Opcode: opcode, Flags: j.Ask, FD: fd, Block: buf, Offset: n % blocks * int64(j.Block)})
			n++
		}
		requests[len(requests)-1].Flags &^= uring.Linked | uring.Silent
		if err := ask(of, requests...); err != nil {
			return err
		}
		if j.Fsync > 0 && n%int64(j.Fsync) == 0 {
			if err := ask(&d.Fsync, uring.Request{Opcode: uring.Fsync, FD: fd}); err != nil {
				return err
			}
		}
	}
	return nil
}

// needUring asks for what a trace of requests takes: tracepoints that say which one they
// are about.
func needUring(t *testing.T, needs ...lab.Requirement) {
	t.Helper()
	needTrace(t, append([]lab.Requirement{lab.IOUring, lab.MinKernel(6, 1), lab.NoSystemd}, needs...)...)
}

// ways are those in which direct requests are asked for, with how many at a time.
var ways = map[string]job{
	"one":    {Uring: 1},
	"eight":  {Uring: 8},
	"linked": {Uring: 4, Ask: uring.Linked},
	"async":  {Uring: 4, Ask: uring.Async},
	"polled": {Uring: 2, Polled: true},
}

// throttledRequests asserts that requests that a rule holds are seen, each with all of its
// time, that the rule is named, and that their I/O is nobody else's. A short run takes some ways
// of asking only.
func throttledRequests(t *testing.T, short ...string) {
	t.Helper()
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	limit := lab.Scaled(lab.Here(t), 10_000_000)
	g.limitWrites(t, disk.Number.String(), strconv.Itoa(limit))
	for name, j := range ways {
		if testing.Short() && !slices.Contains(short, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			// Blocks that the file has already: who has to find new ones keeps the others waiting.
			j.File, j.Groups, j.For, j.Flags, j.Block, j.Size = filepath.Join(disk.Dir, name), g.dirs(), traceFor(t), unix.O_DIRECT, 256<<10, 16<<20
			j.First = lab.Here(t).Lane == "native" // emulated, the kernel's own record is compared
			written(t, j.File, j.Size)
			before := busyFor(t, disk)
			r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
			device := (busyFor(t, disk) - before).Seconds()
			addsUp(t, r, "write", own.Write)
			for _, b := range r.Behind {
				if b.Direction == "write" {
					t.Errorf("behind the scenes: %+v", b)
				}
			}
			if len(r.Open) > 0 {
				t.Errorf("not ended: %+v", r.Open)
			}
			j.binds(t, own.Write, limit)
			least := causeMin
			if j.Ask == uring.Linked {
				least = 0.3 // each waits for those before it: of four in a row 0.4 is its own wait
			}
			// Of a program that the kernel left out the trace does not know what a request waited
			// for: that is other I/O then, and so not all of it has a name.
			named := r.Lost["missed"] == 0
			if !named {
				t.Logf("%d programs were left out: not all of the time has a cause", r.Lost["missed"])
			}
			// A disk that others are busy with takes its time: as much of it is the device's as the
			// kernel has counted for that.
			w := r.slowest(t)
			device = min(device, w.Split["device"]+w.Split["block_queue"]) / w.Seconds
			if w.share("blk_throttle") < least || named && w.share("blk_throttle")+w.share("io_uring")+device < 0.9 {
				lab.Measures(t)
				t.Errorf("causes %v of %s (device %.2f by the kernel's count), want blk_throttle with at least %.1f", w.Verdict.Causes, w.Verdict.Of, device, least)
			}
		})
	}
}

// busyFor is the time of all I/O of a disk that the kernel has counted, added up.
func busyFor(t *testing.T, disk *lab.TestDisk) time.Duration {
	t.Helper()
	a, err := blkdev.New("/").Activity(disk.Number)
	if err != nil {
		t.Fatal(err)
	}
	return a.Waited
}

// Requests of io_uring have the same causes as system calls.
func TestUringThrottle(t *testing.T) {
	needUring(t, lab.Guest, lab.FS("ext4"))
	throttledRequests(t, "async") // the others natively
}

// Requests without an answer are not followed, and no request that has ended is reported as
// unfinished.
func TestUringSilent(t *testing.T) {
	needTraceNatively(t, lab.IOUring, lab.MinKernel(6, 1), lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	j := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: time.Second, Block: 64 << 10, Size: 1 << 20, Uring: 4, Ask: uring.Silent, Read: true}
	r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
	const few = 32 // the load's own start
	answered := own.Read.Count / j.Uring
	if seen := r.of(t, "read").Count; seen < fewest(answered, r.Lost) || seen > answered+few {
		t.Errorf("%d reads seen, want the %d that were answered", seen, answered)
	}
	if len(r.Open) > 0 {
		t.Errorf("not ended: %+v", r.Open)
	}
}

func TestUringDevice(t *testing.T) {
	needUring(t, lab.Whole, lab.DM, lab.Command("dmsetup"), lab.Command("mkfs.ext4"))
	dir, _ := delayed(t, slowDevice(t))
	g := newGroup(t)
	j := job{File: filepath.Join(dir, "f"), Groups: g.dirs(), For: traceFor(t), Flags: unix.O_DIRECT, Block: 64 << 10, Size: 1 << 20, Uring: 1, Fsync: 8}
	r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
	r.of(t, "write").blames(t, "device", causeMin)
	addsUp(t, r, "write", own.Write)
	addsUp(t, r, "fsync", own.Fsync)
}

// A worker of io_uring does the work that would have to sleep, here in dirty throttling.
func TestUringDirtyThrottling(t *testing.T) {
	needUring(t, lab.Guest, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	setting(t, "/proc/sys/vm/dirty_bytes", 8192)
	g := newGroup(t)
	j := job{File: filepath.Join(disk.Dir, "b"), Groups: g.dirs(), For: traceFor(t), Block: 64 << 10, Size: 1 << 20, Uring: 1, First: true}
	r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
	r.slowest(t).blames(t, "dirty_throttling", causeMin)
	addsUp(t, r, "write", own.Write)
}
