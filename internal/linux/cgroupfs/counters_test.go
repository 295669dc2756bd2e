package cgroupfs_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

func stat(rb, wb, r, w uint64) []cgroupfs.Stat {
	return []cgroupfs.Stat{{Device: blkdev.Number{Major: 8}, ReadBytes: rb, WrittenBytes: wb, Reads: r, Writes: w}}
}

// readCounters reads and compares.
func readCounters(t *testing.T, c *cgroupfs.Counters, all, wantChanged bool, want []cgroupfs.Stat) {
	t.Helper()
	got, changed, err := c.Read(all)
	if err != nil || changed != wantChanged || !reflect.DeepEqual(got, want) {
		t.Errorf("Read(%v) = %v, %v, %v; want %v, %v", all, got, changed, err, want, wantChanged)
	}
}

func TestCountersV2(t *testing.T) {
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{cgrouptest.V2Dir + "/a/io.stat": "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n"})
	c, err := h.Group("/a").OpenCounters()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Files() != 1 {
		t.Errorf("%d files", c.Files())
	}
	readCounters(t, c, false, true, stat(1, 2, 3, 4))
	readCounters(t, c, false, false, stat(1, 2, 3, 4))
	readCounters(t, c, true, false, stat(1, 2, 3, 4))
	h.Write(cgrouptest.V2Dir+"/a/io.stat", "8:0 rbytes=1 wbytes=2 rios=3 wios=5 dbytes=0 dios=0\n")
	readCounters(t, c, false, true, stat(1, 2, 3, 5))
	h.Write(cgrouptest.V2Dir+"/a/io.stat", "8:0 rbytes=x\n")
	if _, _, err := c.Read(false); err == nil {
		t.Error("a line that is no counter was read")
	}
	if _, err := h.Group("/gone").OpenCounters(); !cgroupfs.IsGone(err) {
		t.Errorf("a group that is not there: %v", err)
	}
}

func TestCountersV1(t *testing.T) {
	dir := cgrouptest.V1Dir + "/a/blkio.throttle."
	h := cgrouptest.New(t, cgroupfs.V1, map[string]string{
		dir + "io_service_bytes": "8:0 Read 1\n8:0 Write 2\n8:0 Sync 3\n8:0 Total 3\nTotal 3\n",
		dir + "io_serviced":      "8:0 Read 3\n8:0 Write 4\n8:0 Total 7\nTotal 7\n",
	})
	c, err := h.Group("/a").OpenCounters()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Files() != 2 {
		t.Errorf("%d files", c.Files())
	}
	readCounters(t, c, false, true, stat(1, 2, 3, 4))
	// Operations alone are seen when all is asked for.
	h.Write(dir+"io_serviced", "8:0 Read 3\n8:0 Write 9\n8:0 Total 12\nTotal 12\n")
	readCounters(t, c, false, false, stat(1, 2, 3, 4))
	readCounters(t, c, true, true, stat(1, 2, 3, 9))
	// The operations alone.
	h.Write(dir+"io_service_bytes", "8:0 Read 100\n8:0 Write 2\n8:0 Sync 3\n8:0 Total 102\nTotal 102\n")
	for _, writes := range []uint64{9, 11, 11} {
		h.Write(dir+"io_serviced", fmt.Sprintf("8:0 Read 3\n8:0 Write %d\n8:0 Total 14\nTotal 14\n", writes))
		if got, err := c.ReadOps(); err != nil || !reflect.DeepEqual(got, stat(1, 2, 3, writes)) {
			t.Errorf("%v, %v; want %d writes", got, err, writes)
		}
	}
	readCounters(t, c, false, true, stat(100, 2, 3, 11))
	h.Write(dir+"io_serviced", "8:0 Read x\n")
	if _, err := c.ReadOps(); err == nil {
		t.Error("a line that is no counter was read")
	}
	h.Write(dir+"io_serviced", "8:0 Read 4\n8:0 Write 11\nTotal 15\n")
	readCounters(t, c, false, true, stat(100, 2, 4, 11)) // all is read after an error
}

func TestPressure(t *testing.T) {
	h := cgrouptest.New(t, cgroupfs.V2, map[string]string{
		cgrouptest.V2Dir + "/a/io.pressure":  "some avg10=1.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=20\n",
		cgrouptest.V2Dir + "/b/io.pressure":  "some avg10=1.00 avg60=0.00 avg300=0.00 total=-1\n",
		cgrouptest.V2Dir + "/c/cgroup.procs": "",
	})
	p, there, err := h.Group("/a").Pressure()
	if want := (cgroupfs.Pressure{Some: 1500 * time.Millisecond, Full: 20 * time.Microsecond}); err != nil || !there || p != want {
		t.Errorf("Pressure = %v, %v, %v; want %v", p, there, err, want)
	}
	if _, _, err := h.Group("/b").Pressure(); err == nil {
		t.Error("a negative time was read")
	}
	if _, there, err := h.Group("/c").Pressure(); there || err != nil {
		t.Errorf("a group without the file: %v, %v", there, err)
	}
}
