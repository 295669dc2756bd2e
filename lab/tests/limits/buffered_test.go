package limits_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// bufferedSeconds is how long a buffered writer's bytes take at its limit, so that the
// bursts in which a file system writes back weigh little.
const bufferedSeconds = 10

// bufferedRate is the limit in MiB/s. Writeback of 10 MiB/s is all that an emulated
// processor can do.
func bufferedRate(e environ.Environ) int {
	if e.Lane == "qemu" {
		return 3
	}
	return 10
}

// S20, S25: on v2, buffered writes to a fresh file are held at the device, from the
// start of the writer to the end of its fsync.
func TestBufferedIsHeldAtTheDevice(t *testing.T) {
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fs, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.FS(fs))
			rate := bufferedRate(e)
			t.Parallel()
			disk := lab.Disk(t, lab.FS(fs))
			attempt := 0
			lab.Ratio(t, "device", float64(rate<<20), lab.Written.On(e), func() float64 {
				attempt++
				return buffered(t, disk, fileIn(t, disk.Dir, fmt.Sprint(attempt)), rate)
			})
		})
	}
}

// buffered writes a file through the page cache under a limit of rate MiB/s and
// returns what reached the device per second. The group must have been charged for it.
func buffered(t *testing.T, disk *lab.TestDisk, file string, rate int) float64 {
	t.Helper()
	before := counters(t, disk.Number)
	out := weir(t, "run", "--json", "--quiet", "--write", fmt.Sprintf("%dMiB/s", rate), "--on", disk.Dir, "--",
		"dd", "if=/dev/zero", "of="+file, "bs=1048576", fmt.Sprint("count=", rate*bufferedSeconds), "conv=fsync")
	written := counters(t, disk.Number).WrittenBytes - before.WrittenBytes
	var doc struct {
		ElapsedSeconds float64 `json:"elapsed_seconds"`
		Devices        []struct {
			Charged *struct {
				WrittenBytes uint64 `json:"written_bytes"`
			}
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Devices) != 1 || doc.Devices[0].Charged == nil {
		t.Fatalf("weir run --json: %v: %s", err, out)
	}
	charged := doc.Devices[0].Charged.WrittenBytes
	t.Logf("%.1f MB at the device, %.1f MB charged to the group, %.2f s", float64(written)/1e6, float64(charged)/1e6, doc.ElapsedSeconds)
	if total := uint64(rate*bufferedSeconds) << 20; charged < total*95/100 {
		t.Errorf("%d bytes charged to the group, want nearly all of %d", charged, total)
	}
	return float64(written) / doc.ElapsedSeconds
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
