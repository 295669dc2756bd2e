package limits_test

import (
	"fmt"
	"testing"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// Direct reads and writes are held at 1, 10 and 50 MB/s and at 100 and
// 1000 operations a second, on ext4 and XFS.
func TestDirectIsHeld(t *testing.T) {
	t.Parallel()
	t.Run("ext4", func(t *testing.T) {
		// Other tests measure what units get, and other guests with the kernel of hybrid ones measure this.
		if e := lab.Need(t, lab.Root, lab.FS("ext4")); e.Lane != "native" && (e.Has("systemd") || e.Cgroups.Mode == environ.Hybrid) {
			lab.Need(t, lab.Long)
		}
		t.Parallel()
		measureAll(t, "ext4", rate{bps: 1e6}, rate{iops: 100}, rate{bps: 10e6})
	})
	t.Run("xfs", func(t *testing.T) {
		lab.Need(t, lab.Root, lab.OnceV1, lab.FS("xfs"))
		t.Parallel()
		measureAll(t, "xfs", rate{bps: 1e6}, rate{iops: 100}, rate{bps: 10e6})
	})
}

// The faster rates take a good part of a guest's processor, so nothing else is measured at
// the same time, except natively.
func TestFastDirectIsHeld(t *testing.T) {
	if e := lab.Need(t, lab.Root, lab.Long); e.Lane == "native" {
		t.Parallel()
	}
	t.Run("operations", func(t *testing.T) { fast(t, rate{iops: 1000}, lab.OnceV2) })
	t.Run("bytes", func(t *testing.T) { fast(t, rate{bps: 50e6}, lab.OnceV1, lab.Rates) })
}

// fast measures a rate on both file systems at once, but where a program's system calls
// take long.
func fast(t *testing.T, r rate, needs ...lab.Requirement) {
	for _, fs := range []string{"ext4", "xfs"} {
		t.Run(fs, func(t *testing.T) {
			e := lab.Need(t, append(needs, lab.Root, lab.Long, lab.FS(fs))...)
			if e.Lane != "qemu" && !e.Has("traced") {
				t.Parallel()
			}
			measureAll(t, fs, r)
		})
	}
}

// measureAll measures rates side by side on one disk, reading and writing.
func measureAll(t *testing.T, fs string, rates ...rate) {
	t.Helper()
	e := lab.Here(t)
	disk := lab.Disk(t, lab.FS(fs))
	for _, r := range rates {
		for _, read := range []bool{false, true} {
			t.Run(r.name(read), func(t *testing.T) {
				if e.Lane != "qemu" || r.iops < 1000 { // which an emulated processor does once
					t.Parallel()
				}
				r.measure(t, disk.Dir, read)
			})
		}
	}
}

// A rate is a limit on bytes or on operations.
type rate struct{ bps, iops int }

func (r rate) name(read bool) string {
	direction := "write"
	if read {
		direction = "read"
	}
	if r.iops > 0 {
		return fmt.Sprintf("%s-%dIOPS", direction, r.iops)
	}
	return fmt.Sprintf("%s-%dMB", direction, r.bps/1e6)
}

func (r rate) flags(read bool) []string {
	flag := "--write"
	if read {
		flag = "--read"
	}
	if r.iops > 0 {
		return []string{flag + "-iops", fmt.Sprint(r.iops)}
	}
	return []string{flag, fmt.Sprint(r.bps)}
}

const directFile = 32 << 20

func (r rate) measure(t *testing.T, dir string, read bool) {
	job := load.Job{Path: load.Direct, Read: read, File: fileIn(t, dir, "f"), Block: 4 << 10, Size: directFile, Warm: warm, For: window}
	filled(t, job.File, directFile)
	if r.bps > 0 {
		job.Block = blockFor(r.bps)
	}
	limits := append(r.flags(read), "--on", dir)
	if r.iops > 0 {
		lab.Ratio(t, "operations", float64(r.iops), lab.Direct, func() float64 { return limited(t, limits, job).OpsPerSec() })
		return
	}
	lab.Ratio(t, "bytes", float64(r.bps), lab.Direct, func() float64 { return limited(t, limits, job).BytesPerSec() })
}
