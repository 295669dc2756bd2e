package text

import (
	"testing"
	"time"

	"github.com/weir-io/weir/internal/act/escape"
	"github.com/weir-io/weir/internal/act/launch"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/look/tally"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/running"
	"github.com/weir-io/weir/internal/ui/cli"
	"github.com/weir-io/weir/lab"
)

// ran is a command that wrote past its limit on one device.
func ran(version cgroupfs.Version, told bool) running.Report {
	sda := blkdev.Device{Number: blkdev.Number{Major: 8}, Node: "/dev/sda"}
	l := limit.Limit{WBPS: limit.PerSecond(10e6), RIOPS: limit.PerSecond(500)}
	sum := &tally.Sum{Told: told, Escapes: []escape.File{{Path: "/srv/log", Bytes: 30e6, Owner: inode.Group{Root: true}}, {Inode: 12, Device: sda.Number, Bytes: 20e6, Owner: inode.Group{Path: "/other"}}}}
	sum.Written = 105e6
	return running.Report{Version: version, Cgroup: "/weir-job", Result: launch.Result{Ended: true, Tally: sum}, Devices: []running.Device{{
		Expected: place.Expected{Placed: place.Placed{Device: sda, Limit: l}},
		Charged:  &cgroupfs.Stat{WrittenBytes: 55e6}, Disk: &blkdev.Counters{WrittenBytes: 110e6},
		Read:  &tally.Verdict{State: tally.Idle},
		Write: &tally.Verdict{State: tally.NotHeld, Bytes: 105e6, Took: 5 * time.Second, Ops: 500, Escaped: 50e6, Doubts: []string{"it was short"}},
	}}}
}

func TestRun(t *testing.T) {
	lab.Unit(t)
	const first = "weir: /dev/sda: read nothing, limit 500 ops/s\n" +
		"weir: /dev/sda: wrote 105 MB in 5.0 s: 21.0 MB/s, 100 ops/s, limit 10 MB/s: NOT held\n" +
		"weir:   it was short\n" +
		"weir:   the command wrote 105 MB (to memory or disk); the kernel charged 55.0 MB to its group; /dev/sda wrote 110 MB so far, for all processes\n"
	wrote(t, "on v1", func(out *cli.Out) { Run(out, ran(cgroupfs.V1, false)) },
		first+"weir:   50.0 MB went past the limit: cgroup v1 charges their writeback to the root group\n", "")
	wrote(t, "seen on v2", func(out *cli.Out) { Run(out, ran(cgroupfs.V2, true)) },
		first+"weir:   30.0 MB went past the limit: the kernel charges /srv/log to the root group\n"+
			"weir:   20.0 MB went past the limit: the kernel charges inode 12 on 8:0 to cgroup /other\n", "")
	wrote(t, "worked out on v2", func(out *cli.Out) { Run(out, ran(cgroupfs.V2, false)) },
		first+"weir:   50.0 MB went past the limit: the kernel charges files that the command wrote to to another group\n", "")
	r := running.Report{HandedOn: "docker", Result: launch.Result{Stops: 1}}
	wrote(t, "handed on", func(out *cli.Out) { Run(out, r) },
		"weir: note: docker hands its work to a daemon in another group, so this limit did not apply. Find that group with weir show, and limit it with weir set\n"+
			"weir: weir's pacer paused the command 1 time, because it wrote to files that the kernel charges to another group\n", "")
	burst := ran(cgroupfs.V1, false)
	burst.Devices[0].Read, burst.Devices[0].Write.Escaped, burst.Devices[0].Write.Doubts = nil, 0, nil
	burst.Devices[0].Write.Burst = &tally.Burst{Bytes: 30e6, Ops: 7, Took: 200 * time.Millisecond}
	wrote(t, "at once", func(out *cli.Out) { Run(out, burst) }, "weir: /dev/sda: wrote 105 MB in 5.0 s: 21.0 MB/s, 100 ops/s, limit 10 MB/s: NOT held\n"+
		"weir:   30.0 MB of that, in 7 operations, took 200 ms, which is more than the limit lets through\n", "")
	burst.Devices[0].Write.Burst.Bytes = 105e6
	wrote(t, "all at once", func(out *cli.Out) { Run(out, burst) }, "weir: /dev/sda: wrote 105 MB in 5.0 s: 21.0 MB/s, 100 ops/s, limit 10 MB/s: NOT held\n", "")
	held := ran(cgroupfs.V2, false)
	held.Devices[0].Read, held.Devices[0].Write = nil, &tally.Verdict{State: tally.Held, Bytes: 10e6, Took: time.Second, Escaped: 1}
	wrote(t, "held", func(out *cli.Out) { Run(out, held) }, "weir: /dev/sda: wrote 10.0 MB in 1.0 s: 10.0 MB/s, 0 ops/s, limit 10 MB/s: held\n", "")
}

func TestRunLeft(t *testing.T) {
	lab.Unit(t)
	dirty := uint64(3e6)
	write := place.Decision{Places: []place.Expected{{Placed: place.Placed{Limit: limit.Limit{WBPS: limit.PerSecond(10e6)}}, Expectation: place.Expectation{Buffered: place.By{Mechanism: place.Writeback}}}}}
	for about, c := range map[string]struct {
		report running.Report
		memory uint64
		want   string
	}{
		"nothing":   {},
		"processes": {report: running.Report{Left: launch.LeftProcesses, Cgroup: "/weir-job"}, want: "weir: processes of the command are still running in /weir-job; weir removes the group when they have exited\n"},
		"a queue": {report: running.Report{Left: launch.LeftQueued, Result: launch.Result{Queued: 2 * time.Second}},
			want: "weir: some of its writes still wait in the kernel for the limit: weir keeps the group and its limit until they are written, in about 2.0 s\n"},
		"no memory":            {report: running.Report{Result: launch.Result{Starved: true}}, memory: 64 << 20, want: "weir: killed: out of memory (limit 64 MiB)\n"},
		"no memory, no limit":  {report: running.Report{Result: launch.Result{Starved: true}}},
		"dirty, without limit": {report: running.Report{Left: launch.LeftDirty, Result: launch.Result{Dirty: &dirty}}},
		"dirty": {report: running.Report{Left: launch.LeftDirty, Result: launch.Result{Dirty: &dirty}, Decided: write},
			want: "weir: 3.00 MB of its writes are still in memory: weir keeps the group and its limit until they are written\n"},
	} {
		wrote(t, about, func(out *cli.Out) {
			RunLeft(out, c.report, c.memory)
			RunDirty(out, c.report)
		}, c.want, "")
	}
}
