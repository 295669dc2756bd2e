package limits_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/blkdev"
	"github.com/weir-io/weir/lab"
)

// bufferedSeconds is how long a buffered writer's bytes take at its limit, so that the
// bursts in which a file system writes back weigh little.
const bufferedSeconds = 10

// S20, S25: on v2, buffered writes to a fresh file are held at the device.
func TestBufferedIsHeldAtTheDevice(t *testing.T) {
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fs, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.FS(fs))
			if e.Lane == "qemu" && fs != "ext4" { // one is all that an emulated processor does
				lab.Need(t, lab.Long)
			}
			t.Parallel()
			disk := lab.Disk(t, lab.FS(fs))
			attempt := 0
			lab.Ratio(t, "device", 10<<20, lab.Written, func() float64 {
				attempt++
				return buffered(t, disk, fileIn(t, disk.Dir, fmt.Sprint(attempt)), 10)
			})
		})
	}
}

// buffered writes a file through the page cache under a limit of rate MiB/s and
// returns what reached the device per second. The group must have been charged.
func buffered(t *testing.T, disk *lab.TestDisk, file string, rate int) float64 {
	t.Helper()
	arrived := arrivals(t, disk)
	out := weir(t, "run", "--json", "--quiet", "--write", fmt.Sprintf("%dMiB/s", rate), "--on", disk.Dir, "--",
		"dd", "if=/dev/zero", "of="+file, "bs=1048576", fmt.Sprint("count=", rate*bufferedSeconds), "conv=fsync")
	written, took := arrived()
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
	charged := doc.Devices[0].Charged.WrittenBytes
	t.Logf("%.1f MB at the device in %.2f s, %.1f MB charged to the group", float64(written)/1e6, took.Seconds(), float64(charged)/1e6)
	if total := uint64(rate*bufferedSeconds) << 20; charged < total*95/100 {
		t.Errorf("%d bytes charged to the group, want nearly all of %d", charged, total)
	}
	return float64(written) / took.Seconds()
}

// A large request that the throttle lets go is done in pieces: burst is longer than a
// disk that others use as well takes for all of them, and pause than between two.
const (
	burst = 1500 * time.Millisecond
	pause = 150 * time.Millisecond
)

// arrivals watches what is written to a disk until stop is called, which returns what
// arrived after the first burst and in which time. Writeback comes in requests of
// many MiB, each of which waits for its whole size under the limit: a rate is exact
// only from the end of one to the end of another.
func arrivals(t *testing.T, disk *lab.TestDisk) (stop func() (uint64, time.Duration)) {
	t.Helper()
	type arrival struct {
		at      time.Time
		written uint64
	}
	start := counters(t, disk.Number).WrittenBytes
	stopped, done := make(chan struct{}), make(chan struct{})
	var began time.Time
	bursting := true
	first, last := arrival{written: start}, arrival{written: start}
	look := func() {
		now := arrival{time.Now(), counters(t, disk.Number).WrittenBytes}
		if now.written == last.written {
			return
		}
		if began.IsZero() {
			began = now.at
		} else if now.at.Sub(last.at) > pause || now.at.Sub(began) > burst {
			bursting = false
		}
		if last = now; bursting {
			first = now
		}
	}
	go func() {
		defer close(done)
		for {
			select {
			case <-stopped:
				return
			case <-time.After(10 * time.Millisecond):
				look()
			}
		}
	}()
	return func() (uint64, time.Duration) {
		close(stopped)
		<-done
		look()
		return last.written - first.written, last.at.Sub(first.at)
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
