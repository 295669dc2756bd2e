package why_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// written writes a file of 4 MiB in a group, and returns how fast the kernel brings it
// to the disk when somebody else syncs the file system.
func written(t *testing.T, g group, disk *lab.TestDisk, file string) float64 {
	t.Helper()
	if err := start(t, g, "once", 60, file).Wait(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(disk.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, before := lab.DeviceBytes(t, disk.Number)
	began := time.Now()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	_, after := lab.DeviceBytes(t, disk.Number)
	return float64(after-before) / time.Since(began).Seconds()
}

// ext4 with data=journal writes data as the root group, until it is mounted otherwise.
// lab/tests/agree measures each path.
func TestWhyDataJournal(t *testing.T) {
	lab.Need(t, lab.Root, lab.Long, lab.Rates, lab.Guest, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	remount := func(options string) {
		t.Helper()
		if err := unix.Unmount(disk.Dir, 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(disk.Node, disk.Dir, "ext4", 0, options); err != nil {
			t.Fatal(err)
		}
	}
	remount("data=journal")
	g := limited(t, "why-journal", disk)
	r := explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.want(t, "ext4-data-journal", "breaks")
	if r.held("direct", false) != "no" || r.held("buffered", false) != "no" {
		t.Errorf("direct and buffered writes are held: %v", r.codes())
	}
	remount("data=ordered") // as the fix says
	r = explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.gone(t, "ext4-data-journal")
	if r.held("direct", false) != "yes" {
		t.Errorf("a direct write is not held: %v", r.codes())
	}
}

// A buffered writer with little memory and a low write limit hangs, unless the device's
// dirty pages are bounded.
func TestWhySlowDrain(t *testing.T) {
	lab.Need(t, lab.Root, lab.Long, lab.Rates, lab.V2, lab.Memory, lab.Guest, lab.MinKernel(6, 2), lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	g := limited(t, "why-drain", disk)
	g.set(t, "memory.max", fmt.Sprint(64<<20))
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).want(t, "slow-drain", "hurts")
	g.set(t, "memory.max", "max")
	r := explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.gone(t, "slow-drain")
	f := r.want(t, "writer-runs-ahead", "note")
	g.set(t, "memory.max", fmt.Sprint(64<<20))
	f.paste(t, "strict_limit")
	t.Cleanup(func() {
		bdi := "/sys/class/bdi/" + disk.Number.String()
		_ = os.WriteFile(bdi+"/strict_limit", []byte("0"), 0)
		_ = os.WriteFile(bdi+"/min_ratio", []byte("0"), 0)
		_ = os.WriteFile(bdi+"/max_ratio", []byte("100"), 0)
	})
	r = explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.gone(t, "slow-drain")
	r.gone(t, "writer-runs-ahead")
	if r.held("buffered", false) != "yes" || r.status != 0 {
		t.Errorf("buffered write: %q, status %d, findings %v", r.held("buffered", false), r.status, r.codes())
	}
	for i := range lab.Times(t, "WEIR_PAIRS", 0) {
		t.Run(fmt.Sprint("pair-", i), func(t *testing.T) { pair(t, fmt.Sprint("why-pair-", i)) })
	}
}

// On kernels without strict limits for dirty pages, more memory is the way out.
func TestWhySlowDrainOnOldKernels(t *testing.T) {
	lab.Need(t, lab.Root, lab.Long, lab.Rates, lab.V2, lab.Memory, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	g := limited(t, "why-drain-old", disk)
	g.set(t, "memory.max", fmt.Sprint(64<<20))
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).want(t, "slow-drain", "hurts")
	g.set(t, "memory.max", "max")
	r := explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.gone(t, "slow-drain")
	if r.held("buffered", false) != "device" {
		t.Errorf("buffered write: %q, findings %v", r.held("buffered", false), r.codes())
	}
}

// At a low limit a buffered write reaches the disk in bursts.
func TestWhyLargeWriteback(t *testing.T) {
	t.Parallel()
	for _, fs := range []string{"ext4", "xfs"} {
		t.Run(fs, func(t *testing.T) {
			lab.Need(t, lab.Root, lab.Long, lab.Rates, lab.V2, lab.Memory, lab.FS(fs))
			t.Parallel()
			const limit, size = 2 << 20, 12 << 20
			disk := lab.Disk(t, lab.FS(fs))
			cmd := exec.Command("weir", "run", "--quiet", "--name", "why-bursts-"+fs, "--write", fmt.Sprint(limit), "--on", disk.Dir, "--",
				"dd", "if=/dev/zero", "of="+disk.Dir+"/f", "bs=1048576", fmt.Sprint("count=", size>>20), "conv=fsync")
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- cmd.Wait() }()
			_, last := lab.DeviceBytes(t, disk.Number)
			largest := int64(0)
			for ended := false; !ended; {
				select {
				case err := <-done:
					if err != nil {
						t.Error(err)
					}
					ended = true
				case <-time.After(300 * time.Millisecond):
				}
				_, now := lab.DeviceBytes(t, disk.Number)
				largest, last = max(largest, now-last), now
			}
			t.Logf("%.1f MiB at once", float64(largest)/(1<<20))
			if largest < 2*limit*3/10 { // twice what comes evenly
				t.Errorf("%d bytes at once, want a burst", largest)
			}
			explain(t, "--write", fmt.Sprint(limit), disk.Dir).want(t, "large-writeback", "note")
		})
	}
}

// Data that a group has written and that is not on the disk yet takes time to write.
func TestWhyBacklog(t *testing.T) {
	lab.Need(t, lab.Root, lab.Long, lab.Rates, lab.V2, lab.Memory, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := limited(t, "why-backlog", disk)
	g.limit(t, disk, "400000")
	if err := start(t, g, "once", 60, filepath.Join(disk.Dir, "f")).Wait(); err != nil {
		t.Fatal(err)
	}
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).want(t, "backlog", "note")
	g.limit(t, disk, "max")
	unix.Sync()
	g.limit(t, disk, "400000")
	lab.Await(t, 20*time.Second, "the backlog to be gone", func() bool {
		return explain(t, "cgroup:"+g.path, "--on", disk.Dir).find("backlog") == nil
	})
}

// Data in the page cache is read without the disk.
func TestWhyCached(t *testing.T) {
	lab.Need(t, lab.Root, lab.Long, lab.Rates, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	file := filepath.Join(disk.Dir, "f")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	explain(t, file, "--read", "2MB/s").want(t, "cached", "note")
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(f.Sync(), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)); err != nil { // what dd oflag=nocache does
		t.Fatal(err)
	}
	explain(t, file, "--read", "2MB/s").gone(t, "cached")
}
