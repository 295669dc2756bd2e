package trace_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// Buffered writes do not wait here, but a rule holds their writeback. The report keeps that
// apart from the calls' own time.
func TestBehindTheScenes(t *testing.T) {
	needTrace(t, lab.V2, lab.Memory, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t)
	g.limitWrites(t, disk.Number.String(), "5000000")
	const size = 12 << 20
	j := job{File: filepath.Join(disk.Dir, "f"), Groups: g.dirs(), For: 200 * time.Millisecond, Block: 64 << 10, Size: size, Pause: 500 * time.Microsecond}
	r, own := traced(t, "cgroup:/"+g.name, func() done {
		d := j.start(t)()
		writtenBack(t, disk.Dir)
		return d
	})
	if held := r.of(t, "write").Split["blk_throttle"]; held > 0.05*own.Write.Took.Seconds() {
		t.Errorf("the calls waited %.3f s in the throttle", held)
	}
	written := min(int64(own.Write.Count)*64<<10, size)
	for _, b := range r.Behind {
		if b.Direction != "write" {
			continue
		}
		t.Logf("behind: %d requests, %d of %d bytes, throttle %.3f s, queue %.3f s, device %.3f s", b.Requests, b.Bytes, written, b.BlkThrottleSeconds, b.BlockQueueSeconds, b.DeviceSeconds)
		if ratio := float64(b.Bytes) / float64(written); ratio < 0.9 || ratio > 1.2 {
			t.Errorf("%d bytes were written back, the load wrote %d", b.Bytes, written)
		}
		if share := b.BlkThrottleSeconds / (b.BlkThrottleSeconds + b.BlockQueueSeconds + b.DeviceSeconds); share < causeMin {
			lab.Measures(t)
			t.Errorf("blk-throttle has %.2f of the requests' time, want at least %.2f", share, causeMin)
		}
		return
	}
	t.Error("no writeback was seen")
}

// writtenBack has a file system's dirty pages written by the kernel's own threads, which charge
// them to their group: nobody of the target waits for that.
func writtenBack(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		t.Fatal(err)
	}
}
