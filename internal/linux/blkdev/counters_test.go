package blkdev

import (
	"strings"
	"testing"
	"time"
)

// An NVMe disk with several paths counts nothing itself before Linux 6.4: its paths do.
func TestCountersOfPaths(t *testing.T) {
	const nothing = "0 0 0 0 0 0 0 0 0 0 0"
	tr := newTree(t)
	tr.device("devices/virtual/nvme-subsystem/nvme-subsys0", "nvme0n1", "259:1", "stat", nothing)
	for name, stat := range map[string]string{
		"nvme0c0n1": "10 0 80 5 2 0 16 1 0 6 6", "nvme0c1n1": "1 0 8 5 1 0 8 1 0 6 6",
		"nvme0c0n2": "500 0 500 5 500 0 500 1 0 6 6", "nvme00c0n1": "7 0 7 0 7 0 7 0 0 0 0", "nvme0c0n1p1": "7 0 7 0 7 0 7 0 0 0 0",
	} { // hidden disks: sysfs has them, and no number
		tr.file("sys/class/block/"+name+"/stat", stat+"\n")
	}
	tr.device("devices/virtual/nvme-subsystem/nvme-subsys0", "nvme0n2", "259:2", "stat", "3 0 8 0 4 0 16 0 0 0 0")
	tr.device("devices/pci0000:00/block", "nvme1n1", "259:3", "stat", nothing)
	tr.device("devices/pci0000:00/block", "sda", "8:0", "stat", nothing)
	tr.device("devices/pci0000:00/block", "sdb", "8:16", "stat", "1 2")
	for number, want := range map[string]Counters{
		"259:1": {11, 88 * 512, 3, 24 * 512},
		"259:2": {3, 8 * 512, 4, 16 * 512}, // from 6.4 on it counts
		"259:3": {}, "8:0": {},
	} {
		n, err := ParseNumber(number)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := tr.fs().Counters(n); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", number, got, err, want)
		}
	}
	if _, err := tr.fs().Counters(Number{8, 16}); err == nil || !strings.Contains(err.Error(), "too few fields") {
		t.Errorf("a file cut short: %v", err)
	}
}

func TestActivity(t *testing.T) {
	tr := newTree(t)
	tr.device("devices/pci0000:00/block", "sda", "8:0", "stat", "1 2 3 4 5 6 7 8 9 1500 2500 12 13 14 15")
	tr.device("devices/pci0000:00/block", "sdb", "8:16", "stat", "1 2 3 4 5 6 7 8")
	want := Activity{Counters: Counters{1, 3 * 512, 5, 7 * 512}, InFlight: 9, Busy: 1500 * time.Millisecond, Waited: 2500 * time.Millisecond}
	if got, err := tr.fs().Activity(Number{8, 0}); err != nil || got != want {
		t.Errorf("Activity = %+v, %v; want %+v", got, err, want)
	}
	if _, err := tr.fs().Activity(Number{8, 16}); err == nil || !strings.Contains(err.Error(), "too few fields") {
		t.Errorf("a file cut short: %v", err)
	}
}
