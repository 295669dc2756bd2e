package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/lab/environ"
)

// Traffic is what a device has done since it appeared.
type Traffic struct {
	ReadBytes, WriteBytes int64
	Reads, Writes         int64 // requests completed, after merging
}

// DeviceTraffic reads /sys/dev/block/MAJ:MIN/stat (Documentation/block/stat.rst):
// what came out at the bottom, whoever asked for it.
func DeviceTraffic(t testing.TB, dev blkdev.Number) Traffic {
	t.Helper()
	data, err := os.ReadFile("/sys/dev/block/" + dev.String() + "/stat")
	if err != nil {
		t.Fatalf("read device traffic: %v", err)
	}
	traffic, err := parseStat(string(data))
	if err != nil {
		t.Fatalf("read device traffic of %s: %v", dev, err)
	}
	return traffic
}

// DeviceBytes is the read and written bytes of DeviceTraffic.
func DeviceBytes(t testing.TB, dev blkdev.Number) (read, written int64) {
	t.Helper()
	traffic := DeviceTraffic(t, dev)
	return traffic.ReadBytes, traffic.WriteBytes
}

// diskTimes is for how long each disk has had something to do (io_ticks of proc_diskstats(5)).
func diskTimes(t testing.TB) map[string]time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/diskstats")
	if err != nil {
		t.Fatal(err)
	}
	times := make(map[string]time.Duration)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 13 {
			t.Fatalf("parse /proc/diskstats: %q has %d fields", line, len(fields))
		}
		ms, err := strconv.ParseInt(fields[12], 10, 64)
		if err != nil {
			t.Fatalf("parse /proc/diskstats: %v", err)
		}
		times[fields[2]] = time.Duration(ms) * time.Millisecond
	}
	return times
}

func parseStat(text string) (Traffic, error) {
	const sector = 512 // whatever the device's own block size
	fields := strings.Fields(text)
	if len(fields) < 7 {
		return Traffic{}, fmt.Errorf("parse %q: fewer than 7 fields", text)
	}
	var n [7]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(fields[i], 10, 64); err != nil {
			return Traffic{}, fmt.Errorf("parse %q: %w", text, err)
		}
	}
	return Traffic{Reads: n[0], ReadBytes: n[2] * sector, Writes: n[4], WriteBytes: n[6] * sector}, nil
}

// Patience is how long to wait for what takes less than limit on a fast machine: longer on
// a slow one.
func Patience(t testing.TB, limit time.Duration) time.Duration {
	t.Helper()
	e, _, err := environ.Load()
	if err != nil {
		t.Fatal(err)
	}
	return e.Patience(limit)
}

// Await waits until the condition holds, and fails the test after the limit, or later on a
// slow machine (Patience).
func Await(t testing.TB, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	limit = Patience(t, limit)
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", limit, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
