package escape_test

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// weir set holds what a running group writes over another group's file, and weir clear lets it
// go again.
func TestSetHoldsWhatEscapes(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.NoSystemd, lab.Whole, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	file, g, limit := foreign(t, disk.Dir, "alive", 1), group(t, "set"), holdLimit(t)
	cmd := in(t, g, "sh", "-c", `while :; do dd if=/dev/zero of="$0" bs=64K count=8 conv=notrunc,fsync 2>/dev/null; done`, file)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	reaches := func(window time.Duration) float64 {
		began := time.Now()
		_, before := lab.DeviceBytes(t, disk.Number)
		time.Sleep(window)
		_, after := lab.DeviceBytes(t, disk.Number)
		return float64(after-before) / time.Since(began).Seconds()
	}
	weir := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "weir", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("weir %v: %v: %s", args, err, out)
		}
		t.Logf("%s", out)
	}
	free := reaches(3 * time.Second)
	if free < 1.5*float64(limit) {
		limit = int(free / 2) // what it can do is the machine's
	}
	weir("set", "cgroup:"+g.Path(), "--write", fmt.Sprint(limit), "--on", disk.Dir)
	time.Sleep(time.Second)
	lab.Ratio(t, "the disk", float64(limit), lab.Written, func() float64 { return reaches(10 * time.Second) })
	weir("clear", "cgroup:"+g.Path())
	if after := reaches(3 * time.Second); after < 1.3*float64(limit) {
		t.Errorf("after weir clear it writes %.0f bytes a second, and wrote %.0f before there was a limit of %d", after, free, limit)
	}
}
