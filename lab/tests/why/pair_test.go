package why_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

const (
	pairRate  = 1_000_000
	pairTime  = 40 * time.Second
	pairHangs = 5 * time.Second // without a byte written
	pairLeast = 0.9             // of the limit
	lives     = "lives"
)

// pair shows what a low write limit with little memory does to a buffered writer: it
// hangs or is killed. weir why says so of the two numbers, and with what it offers the
// writer lives, at most of its rate.
func pair(t *testing.T, name string) {
	disk := lab.Disk(t, lab.FS("ext4"))
	g := limited(t, name, disk)
	g.limit(t, disk, fmt.Sprint(pairRate))
	g.set(t, "memory.max", fmt.Sprint(64<<20))
	foretold := explain(t, "cgroup:"+g.path, "--on", disk.Dir).want(t, "slow-drain", "hurts")

	ended, _ := writer(t, g, disk)
	t.Logf("without the mend: %s", ended)
	if ended == lives {
		t.Error("the pair did not hurt")
	}
	g.limit(t, disk, "max") // what is left is written
	lab.Await(t, 30*time.Second, "the disk to be quiet", func() bool { return g.dirty(t) < 1<<20 })
	g.limit(t, disk, fmt.Sprint(pairRate))

	bdi := "/sys/class/bdi/" + disk.Number.String()
	for _, name := range []string{"dirty_background_ratio", "dirty_expire_centisecs", "dirty_writeback_centisecs"} {
		file := "/proc/sys/vm/" + name
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.WriteFile(file, before, 0) })
	}
	t.Cleanup(func() {
		g.limit(t, disk, "max")
		_ = os.WriteFile(bdi+"/strict_limit", []byte("0"), 0)
		_ = os.WriteFile(bdi+"/min_ratio", []byte("0"), 0)
		_ = os.WriteFile(bdi+"/max_ratio", []byte("100"), 0)
	})
	foretold.paste(t, "strict_limit")
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).gone(t, "slow-drain")
	ended, rate := writer(t, g, disk)
	t.Logf("with it: %s, %.3f of the limit", ended, rate/pairRate)
	if ended != lives || rate < pairLeast*pairRate || rate > 1.05*pairRate {
		t.Errorf("with the mend the writer %s, with %.0f bytes/s at the disk", ended, rate)
	}
}

// writer writes through the page cache. It returns what became of the writer, and what
// reached the disk a second.
func writer(t *testing.T, g group, disk *lab.TestDisk) (ended string, rate float64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), pairTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "dd", "if=/dev/zero", "of="+filepath.Join(disk.Dir, "f"), "bs=65536", "count=16384", "status=none")
	dir, err := os.Open(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	arrivals := lab.WatchWrites(lab.Charged(g.dir, disk.Number))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	died := make(chan error, 1)
	go func() { died <- cmd.Wait() }()
	progress, wrote := time.Now(), int64(0)
	for {
		select {
		case err := <-died:
			if ctx.Err() == nil {
				if !strings.Contains(g.get(t, "memory.events"), "oom_kill 1") {
					t.Fatalf("dd: %v", err)
				}
				return "is killed for want of memory", arrivals.Rate(t)
			}
			return lives, arrivals.Rate(t)
		case <-time.After(50 * time.Millisecond):
		}
		if n := written64(cmd.Process.Pid); n > wrote {
			progress, wrote = time.Now(), n
		} else if time.Since(progress) > pairHangs {
			rate = arrivals.Rate(t)
			cancel()
			g.limit(t, disk, "max") // it dies when what it waits for is written
			if err := <-died; err == nil {
				t.Error("a writer that hung has ended by itself")
			}
			return fmt.Sprintf("hangs after %d bytes", wrote), rate
		}
	}
}

// written64 is what a process has written, of which much may be in memory.
func written64(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "wchar: "); ok {
			bytes, _ := strconv.ParseInt(strings.TrimSpace(n), 10, 64)
			return bytes
		}
	}
	return 0
}

// dirty is what the group has in memory that is not on the disk.
func (g group) dirty(t *testing.T) int64 {
	t.Helper()
	sum := int64(0)
	for line := range strings.Lines(g.get(t, "memory.stat")) {
		var n int64
		if _, err := fmt.Sscanf(line, "file_dirty %d", &n); err == nil {
			sum += n
		}
		if _, err := fmt.Sscanf(line, "file_writeback %d", &n); err == nil {
			sum += n
		}
	}
	return sum
}
