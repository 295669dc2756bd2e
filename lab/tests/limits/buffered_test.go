package limits_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/lab"
)

// bufferedBytes is what a buffered writer writes: ten seconds at the limit, so that
// the bursts in which a file system writes back weigh little.
const bufferedBytes = 100 << 20

// S20, S25: on v2, buffered writes to a fresh file are held at the device, from the
// first byte that reaches it to the end of the fsync.
func TestBufferedIsHeldAtTheDevice(t *testing.T) {
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fs, func(t *testing.T) {
			lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.FS(fs))
			t.Parallel()
			disk := lab.Disk(t, lab.FS(fs))
			started := make(chan time.Time, 1)
			stop := make(chan struct{})
			go func() { started <- firstWrite(disk.Number, stop) }()
			before := counters(t, disk.Number)
			out := weir(t, "run", "--json", "--quiet", "--write", "10MB/s", "--on", disk.Dir, "--",
				"dd", "if=/dev/zero", "of="+fileIn(t, disk.Dir, "f"), "bs=1048576", fmt.Sprint("count=", bufferedBytes>>20), "conv=fsync")
			ended := time.Now()
			close(stop)
			began := <-started
			after := counters(t, disk.Number)
			bytes := float64(after.WrittenBytes - before.WrittenBytes)
			check(t, "device", bytes/ended.Sub(began).Seconds(), 10e6, written)
			var doc struct {
				Devices []struct {
					Charged *struct {
						WrittenBytes uint64 `json:"written_bytes"`
					}
				}
			}
			if err := json.Unmarshal(out, &doc); err != nil || len(doc.Devices) != 1 || doc.Devices[0].Charged == nil {
				t.Fatalf("weir run --json: %v: %s", err, out)
			}
			if charged := doc.Devices[0].Charged.WrittenBytes; charged < bufferedBytes*95/100 {
				t.Errorf("%d bytes charged to the group, want nearly all of %d", charged, bufferedBytes)
			}
		})
	}
}

// S1, S19, S24: on v1 they are not, and weir run says so.
func TestBufferedIsNotHeldOnV1AndWeirSaysSo(t *testing.T) {
	lab.Need(t, lab.Root, lab.V1, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	file := fileIn(t, disk.Dir, "f")
	began := time.Now()
	_, messages := weirBoth(t, "run", "--write", "1MB/s", "--on", disk.Dir, "--", "dd", "if=/dev/zero", "of="+file, "bs=1048576", "count=64")
	if rate := float64(64<<20) / time.Since(began).Seconds(); rate < 5e6 {
		t.Errorf("the writer got %.0f bytes/s against a limit of 1 MB/s: v1 holds buffered writes, which it never did", rate)
	}
	if want := "buffered writes NOT held: cgroup v1"; !contains(messages, want) {
		t.Errorf("weir run said %q, want %q in it", messages, want)
	}
}

func counters(t *testing.T, n blkdev.Number) blkdev.Counters {
	t.Helper()
	c, err := blkdev.New("/").Counters(n)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// firstWrite waits for the device's first write of more than metadata.
func firstWrite(n blkdev.Number, stop <-chan struct{}) time.Time {
	const metadata = 1 << 20
	before, err := blkdev.New("/").Counters(n)
	for err == nil {
		select {
		case <-stop:
			return time.Now()
		case <-time.After(5 * time.Millisecond):
		}
		var now blkdev.Counters
		if now, err = blkdev.New("/").Counters(n); now.WrittenBytes > before.WrittenBytes+metadata {
			break
		}
	}
	return time.Now()
}
