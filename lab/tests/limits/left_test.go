package limits_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// The limit also holds data that a command left in memory when it ended: weir run keeps the
// group until the data is written. Without the group, Linux 7.2 lets the data that waits in
// the throttle through at once when another group is removed; 5.10, 6.1 and 6.12 do not
// (docs/RESULTS.md).
func TestWhatACommandLeavesIsHeld(t *testing.T) {
	for _, fs := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fs, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.FS(fs))
			if fs != "ext4" {
				lab.Need(t, lab.Long)
			}
			if fs == "btrfs" { // its checksums are more than an emulated processor can do in time
				lab.Need(t, lab.Rates, lab.Whole)
			}
			disk := lab.Disk(t, lab.FS(fs))
			rate := lab.Scaled(e, 4<<20)
			const seconds = 3
			attempt := 0
			lab.Ratio(t, "after the end", float64(rate), lab.Written, func() float64 {
				attempt++
				name := fmt.Sprint("left-", fs, attempt)
				leaves(t, name, disk.Dir, rate, seconds)
				began, before := time.Now(), counters(t, disk.Number).WrittenBytes
				sync := exec.Command("sync", "-f", disk.Dir)
				if err := sync.Start(); err != nil {
					t.Fatal(err)
				}
				until(t, "writeback", 10*time.Second, func() bool { return underWriteback(t) >= uint64(seconds*rate)*9/10 })
				weir(t, "run", "--quiet", "--write", "1MB/s", "--on", disk.Dir, "--", "true") // the other group
				if err := sync.Wait(); err != nil {
					t.Fatal(err)
				}
				took := time.Since(began)
				until(t, "the end of the group", 10*time.Second, func() bool { return !isLimited(t, name) })
				// What is written beyond that are the file system's own blocks, which no limit holds.
				return min(float64(counters(t, disk.Number).WrittenBytes-before), float64(seconds*rate)) / took.Seconds()
			})
		})
	}
}

// A new command can use a name as soon as the earlier command has ended.
func TestANameThatLingersIsFree(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Newest, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	leaves(t, "again", disk.Dir, 1<<20, 4)
	leaves(t, "again", disk.Dir, 1<<20, 4)
	weir(t, "run", "--quiet", "--name", "again", "--write", "1MB/s", "--on", disk.Dir, "--", "true")
	until(t, "the end of the group", 10*time.Second, func() bool { return !isLimited(t, "again") })
}

// leaves has a command write into memory, and end.
func leaves(t *testing.T, name, dir string, rate, seconds int) {
	t.Helper()
	_, said := weirBoth(t, "run", "--name", name, "--write", fmt.Sprint(rate), "--on", dir, "--",
		"dd", "if=/dev/zero", "of="+fileIn(t, dir, name), "bs=1048576", fmt.Sprint("count=", seconds*rate>>20))
	if want := "of its writes are still in memory: weir keeps the group"; !contains(said, want) {
		t.Errorf("weir run said %q, want %q in it", said, want)
	}
	if !isLimited(t, name) {
		t.Errorf("group %s has gone", name)
	}
}

// isLimited reports whether weir shows a limited group of this name.
func isLimited(t *testing.T, name string) bool {
	t.Helper()
	var doc struct{ Groups []struct{ Cgroup string } }
	if err := json.Unmarshal(weir(t, "show", "--json", "--for", "0"), &doc); err != nil {
		t.Fatal(err)
	}
	for _, g := range doc.Groups {
		if strings.Contains(g.Cgroup, name) {
			return true
		}
	}
	return false
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

// On v1 the kernel charges a write when it arrives, and the write can wait in the throttle
// after the program has ended: ext4 writes out a file that a program truncated and filled
// again, when the file is closed. The kernel releases such writes when the group is removed.
// So weir keeps the group, and so does the next weir after one that was killed.
func TestWhatIsQueuedIsHeld(t *testing.T) {
	for _, ends := range []string{"by itself", "killed"} {
		t.Run(ends, func(t *testing.T) {
			e := lab.Need(t, lab.Root, lab.Guest, lab.V1, lab.Long, lab.FS("ext4"))
			t.Parallel()
			disk := lab.Disk(t, lab.FS("ext4"))
			rate := lab.Scaled(e, 4<<20)
			const seconds = 4
			attempt := 0
			lab.Ratio(t, "after the end", float64(rate), lab.Written, func() float64 {
				attempt++
				name := fmt.Sprint("queued-", ends[:2], attempt)
				file := fileIn(t, disk.Dir, name)
				fill := fmt.Sprintf("dd if=/dev/zero of=%s bs=1048576 count=%d", file, seconds*rate>>20)
				system(t, "sh", "-c", fill+" && sync -f "+file)
				before := counters(t, disk.Number).WrittenBytes
				began := time.Now()
				run := []string{"run", "--hold", "kernel", "--name", name, "--write", fmt.Sprint(rate), "--on", disk.Dir, "--", "sh", "-c", fill}
				if ends == "killed" {
					run[len(run)-1] += "; kill -9 $PPID"
					_ = exec.Command("weir", run...).Run() // it is killed
				} else if _, said := weirBoth(t, run...); !contains(said, "still wait in the kernel for the limit: weir keeps the group") {
					t.Errorf("weir run said %q", said)
				}
				if took := time.Since(began); took > seconds*time.Second/2 {
					t.Logf("the command took %s: nothing was queued", took)
					until(t, "the end of the group", 3*seconds*time.Second, func() bool { return !isLimited(t, name) })
					return 0
				}
				all := uint64(seconds * rate)
				written := func() uint64 { return min(counters(t, disk.Number).WrittenBytes-before, all) }
				began, first := time.Now(), written()
				until(t, "the writes", 3*seconds*time.Second, func() bool {
					there := isLimited(t, name)
					if now := written(); !there && now < all*9/10 {
						t.Fatalf("the group has gone when %d of %d bytes were written", now, all)
					}
					time.Sleep(50 * time.Millisecond) // each look is a weir, which needs the processor too
					return written() == all
				})
				took := time.Since(began)
				until(t, "the end of the group", 10*time.Second, func() bool { return !isLimited(t, name) })
				return float64(all-first) / took.Seconds()
			})
		})
	}
}
