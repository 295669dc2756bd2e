package trace_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// On a processor that is not emulated, little time passes between the load's clock and the
// kernel's. So the parts of operations of a few microseconds add up, too.
func TestPartsAddUp(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	for _, c := range []struct {
		name string
		job  job
		kind string
		own  func(done) timed
	}{
		{"buffered-64k", job{Block: 64 << 10, Size: 64 << 20}, "write", func(d done) timed { return d.Write }},
		{"buffered-4k", job{Block: 4 << 10, Size: 64 << 20}, "write", func(d done) timed { return d.Write }},
		{"direct", job{Block: 64 << 10, Size: 64 << 20, Flags: unix.O_DIRECT}, "write", func(d done) timed { return d.Write }},
		{"pauses", job{Block: 64 << 10, Size: 64 << 20, Flags: unix.O_DIRECT, Pause: 2 * time.Millisecond}, "write", func(d done) timed { return d.Write }}, // are not theirs
		// A request ends some microseconds before its answer is taken: it has to take hundreds.
		{"io_uring", job{Block: 256 << 10, Size: 64 << 20, Flags: unix.O_DIRECT, Uring: 1, First: true}, "write", func(d done) timed { return d.Write }},
		{"fsync", job{Block: 16 << 10, Size: 64 << 20, Fsync: 1}, "fsync", func(d done) timed { return d.Fsync }},
		{"cold-reads", job{Block: 64 << 10, Size: 128 << 20, Read: true, Cold: true}, "read", func(d done) timed { return d.Read }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGroup(t)
			j := c.job
			j.File, j.Groups, j.For, j.Empty = filepath.Join(disk.Dir, c.name), g.dirs(), time.Second, true
			if j.Read {
				written(t, j.File, j.Size)
			}
			r, d := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
			exactly(t, r.of(t, c.kind), c.own(d), d.Empty)
		})
	}
}

// written makes a file with all of its blocks on the disk.
func written(t *testing.T, path string, size int64) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for at := int64(0); at < size; at += int64(len(block)) {
		if _, err := f.WriteAt(block, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// shortCall is one of which measuring an empty call is more than a tenth.
const shortCall = 5 * time.Microsecond

// exactly is addsUp without allowances, but for what it takes the load to measure nothing.
// That is partly of an operation's time, and partly not; of a short call, the parts can
// only be told to lie between what the load has measured without it and with it.
func exactly(t *testing.T, o operations, own, empty timed) {
	t.Helper()
	sum := 0.0
	for _, seconds := range o.Split {
		sum += seconds
	}
	nothing := empty.usual()
	less, all := (own.Took - nothing*time.Duration(own.Count)).Seconds(), own.Took.Seconds()
	t.Logf("%s: parts %.3f s, the load's own clock %.3f s, less %s a call %.3f s: %.3f, %.3f; %d of %d calls of %s", o.Kind, sum, all, nothing, less,
		sum/all, sum/less, o.Count, own.Count, own.Took/time.Duration(own.Count))
	most := less
	if own.Took/time.Duration(own.Count) < shortCall {
		most = all
	}
	if sum < 0.95*less || sum > 1.05*most {
		lab.Measures(t)
		t.Errorf("%s: the parts are %.3f s, want %.3f to %.3f s, give or take 5 %%", o.Kind, sum, less, most)
	}
	const few = 16 // the load's own start and end
	if o.Count < own.Count || o.Count > own.Count+few {
		t.Errorf("%s: %d calls seen, the load made %d", o.Kind, o.Count, own.Count)
	}
}

// Where the kernel refuses fentry, the trace says what it cannot show, and shows the rest.
func TestMissing(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"))
	fentry := hasFentry()
	r := startTrace(t, fmt.Sprintf("pid:%d", os.Getpid())).end(t)
	t.Logf("fentry: %v; missing: %+v", fentry == nil, r.Missing)
	if fentry != nil && len(r.Missing) == 0 {
		t.Error("without fentry nothing is missing")
	}
	for _, m := range r.Missing {
		if fentry == nil || !strings.Contains(m.Hook, "fentry") || m.Reason == "" {
			t.Errorf("missing: %+v, while fentry says %v", m, fentry)
		}
	}
	var said strings.Builder
	cmd := exec.Command("weir", "trace", "--for", "100ms")
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Errorf("weir trace: %v", err)
	}
	if got := strings.Count(said.String(), "this kernel has no"); got != min(len(r.Missing), 1) {
		t.Errorf("%d hooks are missing, and weir says %q", len(r.Missing), &said)
	}
	for _, m := range r.Missing {
		if !strings.Contains(said.String(), "no "+m.Hook) {
			t.Errorf("%s is missing, and weir says %q", m.Hook, &said)
		}
	}
}

// hasFentry is why the kernel takes no program at a function's entry.
func hasFentry() error {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Tracing, AttachType: ebpf.AttachTraceFEntry, AttachTo: "vfs_fsync",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}, License: "GPL"})
	if err != nil {
		return err
	}
	return p.Close()
}

// A rule holds direct writes. Where the throttle's entry takes no program, weir infers the
// wait from what the throttle releases.
func TestBlkThrottleNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	g.limitWrites(t, disk.Number.String(), "10000000")
	for name, target := range map[string]string{"group": "cgroup:/" + g.name, "host": ""} {
		t.Run(name, func(t *testing.T) {
			j := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: traceFor(t), Flags: unix.O_DIRECT, Block: 256 << 10, Size: 16 << 20}
			r, own := traced(t, target, func() done { return j.start(t)() })
			least := causeMin
			if target == "" { // others write too
				share := own.Write.Took.Seconds() / r.of(t, "write").Seconds
				t.Logf("%.2f of the time of the host's writes is the load's", share)
				if share < 0.95 {
					least *= share
				}
			}
			r.slowest(t).blames(t, "blk_throttle", least)
			if target != "" {
				addsUp(t, r, "write", own.Write)
				for _, b := range r.Behind { // they are the calls', and nowhere else
					if b.Bytes >= uint64(j.Block) {
						t.Errorf("direct writes that calls waited for are behind the scenes too: %+v", b)
					}
				}
			}
		})
	}
	// What the throttle holds on another disk, or of another group, is not why somebody waits.
	t.Run("neighbour", func(t *testing.T) {
		held := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), Flags: unix.O_DIRECT, Block: 256 << 10, Size: 16 << 20}
		held.start(t)
		other := lab.Disk(t, lab.FS("ext4"))
		j := job{File: filepath.Join(other.Dir, "f"), Groups: g.dirs(), For: traceFor(t), Block: 64 << 10, Size: 16 << 20, Uring: 1, Fsync: 1}
		r, _ := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
		if f := r.of(t, "fsync"); f.Split["blk_throttle"] > 0.01*f.Seconds {
			t.Errorf("fsyncs on another disk: %v", f.Split)
		}
	})
}

func TestUringThrottleNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.IOUring, lab.FS("ext4"))
	t.Parallel() // it waits for the throttle; no other beside it asks io_uring
	throttledRequests(t, "one", "eight", "linked", "polled")
}

// At the memory limit each new page replaces an old one, and the slow writes are those that
// have to find it.
func TestMemcgReclaimNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.Memory, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	g.set(t, g.memory, "memory.limit_in_bytes", "67108864")
	j := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: 3 * time.Second, Block: 64 << 10, Size: 1 << 30, Empty: true}
	r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
	w := r.of(t, "write")
	exactly(t, w, own.Write, own.Empty)
	// Waits for a processor are others' doing: as long as they are busy.
	without, reclaim := 0.0, w.AboveP50["memcg_reclaim"]
	for part, seconds := range w.AboveP50 {
		if part != "run_queue" {
			without += seconds
		}
	}
	t.Logf("above p50, run queue %.3f s; of %.3f s else %.2f are memcg reclaim", w.AboveP50["run_queue"], without, reclaim/without)
	if reclaim < causeMin*without {
		lab.Measures(t)
		t.Errorf("above p50: %v, want memcg_reclaim to be %.2f of all but run_queue", w.AboveP50, causeMin)
	}
	if !slices.ContainsFunc(w.Verdict.Causes, func(c struct {
		Part  string
		Share float64
	}) bool {
		return c.Part == "memcg_reclaim"
	}) {
		t.Errorf("slow writes: %+v, want memcg_reclaim to be named", w.Verdict)
	}
}

// The device takes the time: it is a file on another disk, where a rule allows 30 writes a
// second.
func TestDeviceNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.FS("ext4"))
	t.Parallel()
	disk, g := slowly30(t)
	j := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: traceFor(t), Flags: unix.O_DIRECT, Block: 64 << 10, Size: 1 << 20}
	r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
	r.slowest(t).blames(t, "device", causeMin)
	addsUp(t, r, "write", own.Write)
}

func TestUringDeviceNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.IOUring, lab.FS("ext4"))
	disk, g := slowly30(t)
	j := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: traceFor(t), Flags: unix.O_DIRECT, Block: 64 << 10, Size: 1 << 20, Uring: 1, Fsync: 8}
	r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
	r.of(t, "write").blames(t, "device", causeMin)
	addsUp(t, r, "write", own.Write)
	addsUp(t, r, "fsync", own.Fsync)
}

// slowly30 is a disk that does 30 writes a second for a group.
func slowly30(t *testing.T) (*lab.TestDisk, group) {
	t.Helper()
	below := lab.Disk(t, lab.FS("ext4"))
	disk := lab.DiskOn(t, below)
	g := newGroup(t)
	g.set(t, g.io, "blkio.throttle.write_iops_device", below.Number.String()+" 30")
	return disk, g
}

// A rule makes writes take twice as long as the device does. Both causes are named.
func TestThrottleAndDeviceNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	j := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: traceFor(t), Flags: unix.O_DIRECT, Block: 1 << 20, Size: 16 << 20}
	free := j.start(t)().Write
	g.limitWrites(t, disk.Number.String(), fmt.Sprint(int(float64(free.Count*j.Block)/free.Took.Seconds()/2)))
	r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
	r.slowest(t).names(t, "device", "blk_throttle")
	addsUp(t, r, "write", own.Write)
}

// A disk can have a threshold of its own for dirty pages, and a writer waits for it as for
// the host's.
func TestDirtyThrottlingNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	set := func(file, value string) {
		if err := os.WriteFile(filepath.Join("/sys/class/bdi", disk.Number.String(), file), []byte(value), 0); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() {
		set("strict_limit", "0")
		set("max_ratio", "100") // and so max_bytes
	})
	set("strict_limit", "1")
	set("max_bytes", "1000000")
	g := newGroup(t)
	buffered := job{Groups: g.dirs(), For: traceFor(t), Block: 64 << 10, Size: 16 << 20, Empty: true, First: true}
	t.Run("buffered", func(t *testing.T) {
		j := buffered
		j.File = filepath.Join(disk.Dir, "b")
		r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
		r.slowest(t).blames(t, "dirty_throttling", causeMin)
		exactly(t, r.of(t, "write"), own.Write, own.Empty)
	})
	t.Run("direct", func(t *testing.T) { // makes nothing dirty
		j := buffered
		j.File, j.Flags = filepath.Join(disk.Dir, "d"), unix.O_DIRECT
		r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
		if dirty := r.of(t, "write").Split["dirty_throttling"]; dirty > 0.01*own.Write.Took.Seconds() {
			t.Errorf("direct writes waited %.3f s in dirty throttling", dirty)
		}
		exactly(t, r.of(t, "write"), own.Write, own.Empty)
	})
}

// Another process's fsyncs keep the journal busy.
func TestJournalNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	other := job{File: filepath.Join(disk.Dir, "other"), Block: 64 << 10, Size: 64 << 20, Fsync: 1}
	other.start(t)
	j := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: traceFor(t), Block: 4 << 10, Size: 256 << 20, Touch: true, Fsync: 1}
	r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
	r.slowest(t).blames(t, "journal_locks", causeMin)
	addsUp(t, r, "fsync", own.Fsync)
}

// weir's own pacer pauses a process that writes too fast.
func TestFrozenNatively(t *testing.T) {
	lab.Need(t, lab.Root, lab.Lane("native"), lab.V1, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	tool(t, "weir", "set", "cgroup:/"+g.name, "--write", "100MB/s", "--hold", "pacer", "--on", disk.Node)
	t.Cleanup(func() { tool(t, "weir", "clear", "cgroup:/"+g.name) })
	// A load that begins dirties hundreds of MB before the pacer has it, and what is dirty
	// already costs nothing: the file is larger than that, and the load lasts longer.
	j := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: 6 * time.Second, Block: 64 << 10, Size: 2 << 30, Empty: true}
	r, own := traced(t, "cgroup:/"+g.name, func() done { return j.start(t)() })
	slowest := r.slowest(t)
	slowest.blames(t, "frozen", causeMin)
	exactly(t, r.of(t, "write"), own.Write.byLoad(), own.Empty) // a stop is on the way back from the call: the kernel's record has ended
}
