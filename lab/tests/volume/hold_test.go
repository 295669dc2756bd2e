package volume_test

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// On v1 a volume holds writes through the page cache, at the disk and, from Linux 6.2 on, at
// the writer.
func TestBufferedIsHeld(t *testing.T) {
	for _, c := range []struct {
		fs   string
		rate int // bytes a second
	}{{"ext4", 10e6}, {"xfs", 10e6}, {"ext4", 50e6}, {"ext4", 100e6}} {
		t.Run(fmt.Sprintf("%s/%dMB", c.fs, c.rate/1e6), func(t *testing.T) {
			if c.rate != 10e6 { // a guest's disks are small
				lab.Need(t, lab.Whole, lab.Lane("native"))
			}
			t.Parallel()
			e := lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.Long, lab.Loop, lab.FS(c.fs), lab.FS("ext4"))
			if c.fs != "ext4" { // the whole matrix has it everywhere
				lab.Need(t, lab.Once)
			}
			const seconds = 12
			v := create(t, unique(t), room(t), "--fs", c.fs, "--size", fmt.Sprint(c.rate*(seconds+8)+200e6), "--write", fmt.Sprint(c.rate))
			strict := read(t, "/sys/class/bdi/"+v.Number.String()+"/strict_limit", "none") != "none"
			if !strict && !olderThanBounds(e.Kernel) {
				t.Errorf("Linux %s has no bounds for one disk", e.Kernel)
			}
			writer := 0.0
			attempt := 0
			lab.Ratio(t, "the worse of the disk and a bounded writer", float64(c.rate), lab.Written, func() (disk float64) {
				attempt++
				disk, writer = writes(t, v, fmt.Sprint(attempt), seconds)
				if limit := float64(c.rate); strict && math.Abs(writer-limit) > math.Abs(disk-limit) {
					return writer
				}
				return disk
			})
			t.Logf("the writer: %.3f of %d (bounded: %v)", writer/float64(c.rate), c.rate, strict)
		})
	}
}

func olderThanBounds(kernel string) bool {
	var major, minor int
	_, err := fmt.Sscanf(kernel, "%d.%d", &major, &minor)
	return err == nil && (major < 6 || major == 6 && minor < 2)
}

// writes has a writer in a group of its own write to a new file for some seconds, and returns
// what the disk did and the writer got, in bytes a second.
func writes(t *testing.T, v volume, name string, seconds int) (disk, writer float64) {
	t.Helper()
	file := filepath.Join(v.Mount, name)
	cmd := exec.Command("weir", "run", "--quiet", "--hold", "kernel", "--read", "1GB/s", "--on", v.Mount, "--",
		"dd", "if=/dev/zero", "of="+file, "bs=65536", "status=none")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lab.Await(t, 10*time.Second, "the first write", func() bool { return size(file) > 0 })
	began := time.Now()
	_, before := lab.DeviceBytes(t, v.Number)
	time.Sleep(time.Duration(seconds) * time.Second)
	took := time.Since(began).Seconds()
	_, after := lab.DeviceBytes(t, v.Number)
	written := size(file)
	if err := cmd.Process.Signal(interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was interrupted
	return float64(after-before) / took, float64(written) / took
}

// A volume's limit slows nobody else: neither another volume on the same disk, nor a process
// that syncs a file beside it.
func TestNeighboursAreFree(t *testing.T) {
	lab.Need(t, lab.Root, lab.V1, lab.Rates, lab.Long, lab.Loop, lab.FS("ext4"))
	on := room(t)
	slow := create(t, unique(t)+"-slow", on, "--size", "100MiB", "--write", "1MB/s")
	fast := create(t, unique(t)+"-fast", on, "--size", "100MiB")
	hog := exec.Command("weir", "run", "--quiet", "--hold", "kernel", "--read", "1GB/s", "--on", slow.Mount, "--", "dd", "if=/dev/zero", "of="+slow.Mount+"/f", "bs=65536", "status=none")
	if err := hog.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = hog.Process.Signal(interrupt) // it may have ended
		_ = hog.Wait()
	}()
	lab.Await(t, 10*time.Second, "the hog's first write", func() bool { return size(slow.Mount+"/f") > 0 })
	time.Sleep(time.Second)
	for name, dir := range map[string]string{"another volume": fast.Mount, "the disk beneath": on} {
		lab.Free(t, name, 10e6, func() float64 {
			const bytes = 32 << 20
			began := time.Now()
			if out, err := exec.Command("dd", "if=/dev/zero", "of="+dir+"/g", "bs=1M", fmt.Sprint("count=", bytes>>20), "conv=fsync", "status=none").CombinedOutput(); err != nil {
				t.Fatalf("dd: %v\n%s", err, out)
			}
			return bytes / time.Since(began).Seconds()
		})
	}
}
