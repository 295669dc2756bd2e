package limits_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab"
)

// bufferedSeconds is how long a buffered writer's bytes take at its limit, so that the
// bursts in which a file system writes back weigh little.
const bufferedSeconds = 10

// On v2, buffered writes to a fresh file are held at the device.
func TestBufferedIsHeldAtTheDevice(t *testing.T) {
	t.Parallel()
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fs, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.FS(fs))
			// One is all that an emulated processor does; where systemd is, other tests measure what units get.
			if e.Lane == "qemu" && fs != "ext4" || e.Has(string(lab.Systemd)) {
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

// buffered writes a file through the page cache under a limit of rate MiB/s and returns
// what was let through to the device per second. The group must have been charged with
// all, and the device must have done no more.
func buffered(t *testing.T, disk *lab.TestDisk, file string, rate int) float64 {
	t.Helper()
	note := filepath.Join(t.TempDir(), "cgroup")
	unified := lab.Here(t).Cgroups.Unified
	before := counters(t, disk.Number)
	arrivals := lab.WatchWrites(func() (int64, bool) { return lab.Charged(noted(unified, note), disk.Number)() })
	total := uint64(rate*bufferedSeconds) << 20
	out := weir(t, "run", "--json", "--quiet", "--write", fmt.Sprintf("%dMiB/s", rate), "--on", disk.Dir, "--",
		"sh", "-c", `cat /proc/self/cgroup > "$0" && exec dd if=/dev/zero of="$1" bs=1048576 count="$2" conv=fsync`, note, file, fmt.Sprint(total>>20))
	reached := arrivals.Rate(t)
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
	charged, done := doc.Devices[0].Charged.WrittenBytes, counters(t, disk.Number).WrittenBytes-before.WrittenBytes
	if charged < total*95/100 || done > total*110/100 {
		t.Errorf("%d bytes charged to the group and %d done, want nearly %d", charged, done, total)
	}
	return reached
}

// noted returns the directory of the group that a command has noted; one that is not
// there, if it has not yet.
func noted(unified, note string) string {
	text, _ := os.ReadFile(note)
	for line := range strings.Lines(string(text)) {
		if name, v2 := strings.CutPrefix(line, "0::"); v2 {
			return filepath.Join(unified, strings.TrimSpace(name))
		}
	}
	return note
}

// On v1 the kernel does not hold buffered writes, and weir run says so.
func TestBufferedIsNotHeldOnV1AndWeirSaysSo(t *testing.T) {
	lab.Need(t, lab.Root, lab.V1, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	file := fileIn(t, disk.Dir, "f")
	began := time.Now()
	_, messages := weirBoth(t, "run", "--hold", "kernel", "--write", "1MB/s", "--on", disk.Dir, "--", "dd", "if=/dev/zero", "of="+file, "bs=1048576", "count=64")
	if rate := float64(64<<20) / time.Since(began).Seconds(); rate < 5e6 {
		t.Errorf("the writer got %.0f bytes/s against a limit of 1 MB/s: v1 holds buffered writes, which it never did", rate)
	}
	if want := "expected NOT to hold: buffered writes (cgroup v1"; !contains(messages, want) {
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
