package why_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

const (
	neighbourTime  = 4 * time.Second
	neighbourWaits = 1.0 // seconds: 3.1 were seen, and 0.2 where nobody waits
)

// On ext4 in ordered mode another group's fsync waits for data that a limit holds back, and
// weir why says so. Mounted as its fix says, nobody waits.
func TestWhyNeighboursWait(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.V2, lab.NoSystemd, lab.Once, lab.Rates, lab.FS("ext4"))
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
	remount("dioread_lock")
	g := limited(t, "why-neighbour", disk)
	g.limit(t, disk, "1000000")
	foretold := explain(t, "cgroup:"+g.path, "--on", disk.Dir).want(t, "journal-waits", "hurts")
	longest := func(when string, band lab.Band) {
		t.Helper()
		lab.Ratio(t, "the longest fsync "+when, neighbourWaits, band, func() float64 { return neighbour(t, g, disk).Seconds() })
	}
	waits, none := lab.Band{Low: 1, High: math.Inf(1)}, lab.Band{Low: 0, High: 1}
	longest("beside it", waits)
	g.limit(t, disk, "max")
	longest("without a limit", none)
	g.limit(t, disk, "1000000")
	foretold.paste(t, "dioread_nolock")
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).gone(t, "journal-waits")
	longest("with the fix", none)
}

// neighbour writes and syncs small files while the group does so with larger ones, and
// returns how long the longest fsync took.
func neighbour(t *testing.T, g group, disk *lab.TestDisk) (worst time.Duration) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `while :; do dd if=/dev/zero of="$0" bs=1M count=3 conv=fsync; rm "$0"; done`, filepath.Join(disk.Dir, "theirs"))
	dir, err := os.Open(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = dir.Close()
	n := 0
	for began := time.Now(); time.Since(began) < neighbourTime; n++ {
		f, err := os.Create(filepath.Join(disk.Dir, "own"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
		at := time.Now()
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(at))
		_ = f.Close()
		time.Sleep(50 * time.Millisecond) // a neighbour that seldom syncs
	}
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	_ = cmd.Wait()
	// Who is about to end is not in cgroup.procs any more, and may have its files still.
	lab.Await(t, 30*time.Second, "the group to be empty", func() bool { return strings.Contains(g.get(t, "cgroup.events"), "populated 0") })
	t.Logf("%d fsyncs, the longest took %s", n, worst)
	return worst
}
