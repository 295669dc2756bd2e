package load_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
)

// Except on the buffered path, the disk has what the load counted. Where the file system
// keeps a journal, the disk has more.
func TestLoadWritesReachTheDisk(t *testing.T) {
	eachFS(t, func(t *testing.T, disk *lab.TestDisk) {
		for _, path := range []load.Path{load.Direct, load.Sync, load.Mapped, load.Async} {
			r := do(t, disk, load.Job{Path: path}, nil)
			most := r.disk.WriteBytes
			if disk.FS != "btrfs" && (path == load.Direct || path == load.Async) {
				most = r.total.Bytes
			}
			around(t, string(path)+" bytes written by the disk", r.disk.WriteBytes, max(most, r.total.Bytes), 1<<20+load.DepthDefault*block)
			if r.Left.Dirty != 0 || path != load.Async && r.Left.Writeback != 0 {
				t.Errorf("%s: left %+v", path, r.Left)
			}
		}
	})
}

// Buffered writes are still in memory when the load ends, at most as much as the file has,
// where the kernel tells. They go with the file.
func TestLoadBufferedWritesAreLeft(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Long, lab.Rates, lab.FS("ext4"))
	t.Parallel()
	r := do(t, lab.Disk(t, lab.FS("ext4")), load.Job{Path: load.Buffered}, nil)
	if left := r.Left.Dirty + r.Left.Writeback; r.Left.Known && (left == 0 || left > size) || !r.Left.Known && left != 0 {
		t.Errorf("%s: left %+v", e.Kernel, r.Left)
	}
}

// Async I/O keeps as many operations in flight as it says, sequential and random. Under a
// limit each waits for all those before it.
func TestLoadAsyncHasDepth(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.Rates, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	const rate, depth = 200, 32
	for _, random := range []bool{false, true} {
		job := load.Job{Path: load.Async, Random: random, Depth: depth, Dir: disk.Dir, Block: 4 << 10, Size: size, Warm: window, For: time.Second}
		args := append([]string{"run", "--quiet", "--write-iops", fmt.Sprint(rate), "--on", disk.Dir, "--", "weir", "__load"}, job.Args()...)
		lab.Ratio(t, fmt.Sprintf("operations at once, random %t", random), depth, lab.Band{Low: 0.5, High: 1.5}, func() float64 {
			out, err := exec.Command("weir", args...).Output()
			if err != nil {
				t.Fatalf("weir %q: %v", args, err)
			}
			r, err := load.Decode(bytes.NewReader(out), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("random %t: %.0f operations a second, p50 %v", random, r.OpsPerSec(), r.P50)
			return r.P50.Seconds() * r.OpsPerSec()
		})
	}
}

// A load that is killed leaves no file, and nothing that keeps the disk from being
// unmounted.
func TestLoadLeavesNothing(t *testing.T) {
	lab.Need(t, lab.Rates)
	eachFS(t, func(t *testing.T, disk *lab.TestDisk) {
		before := names(t, disk.Dir)
		cmd, out, stderr := start(t, load.Job{Path: load.Buffered, Dir: disk.Dir, Block: block, Size: size, For: time.Hour}, nil)
		reached := false
		_, err := load.Decode(out, func(tick load.Tick) {
			if tick.Ops > 0 && !reached {
				reached = true
				if during := names(t, disk.Dir); during != before {
					t.Errorf("while it writes: %s", during)
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
			}
		})
		if ended := cmd.Wait(); !reached || err == nil || ended == nil {
			t.Errorf("killed: %v, %v\n%s", err, ended, stderr.Bytes())
		}
		if after := names(t, disk.Dir); after != before {
			t.Errorf("left: %s", after)
		}
	})
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(entries)
}
