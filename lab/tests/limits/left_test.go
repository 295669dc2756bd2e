package limits_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// What a command has left in memory when it ends: the kernel keeps the rules of a group
// that is gone while it has dirty pages. From some kernel after 6.12 on, once all of them
// wait in the throttle, the next group that goes takes the rules with it, and what waits
// is let through at once. weir run warns of what is left.
func TestWhatACommandLeaves(t *testing.T) {
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fs, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.NoSystemd, lab.FS(fs))
			if fs != "ext4" {
				lab.Need(t, lab.Long)
			}
			disk := lab.Disk(t, lab.FS(fs))
			rate := lab.Scaled(e, 4<<20)
			const seconds = 3
			before := counters(t, disk.Number).WrittenBytes
			_, said := weirBoth(t, "run", "--write", fmt.Sprint(rate), "--on", disk.Dir, "--",
				"dd", "if=/dev/zero", "of="+fileIn(t, disk.Dir, "left"), "bs=1048576", fmt.Sprint("count=", seconds*rate>>20))
			if want := "of what it wrote are in memory still, and the group is gone"; !contains(said, want) {
				t.Errorf("weir run said %q, want %q in it", said, want)
			}
			began := time.Now()
			sync := exec.Command("sync", "-f", disk.Dir)
			if err := sync.Start(); err != nil {
				t.Fatal(err)
			}
			until(t, "writeback", 5*time.Second, func() bool { return underWriteback(t) >= uint64(seconds*rate)*9/10 })
			if n := counters(t, disk.Number).WrittenBytes - before; n > uint64(rate) {
				t.Fatalf("%d bytes are written already: the rules went before the other group", n)
			}
			weir(t, "run", "--quiet", "--write", "1MB/s", "--on", disk.Dir, "--", "true") // the group that goes
			if err := sync.Wait(); err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			t.Logf("%d bytes took %s, of which the limit has it %d s", counters(t, disk.Number).WrittenBytes-before, took, seconds)
			if kept := took > seconds*time.Second*9/10; kept == strings.HasPrefix(e.Kernel, "7.") {
				t.Errorf("the rules of the group that went were kept: %t", kept)
			}
		})
	}
}

// underWriteback is what the kernel is writing, in bytes (proc_meminfo(5)).
func underWriteback(t *testing.T) (bytes uint64) {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "Writeback:")
	if _, err := fmt.Sscanf(rest, "%d kB", &bytes); err != nil {
		t.Fatal(err)
	}
	return bytes << 10
}
