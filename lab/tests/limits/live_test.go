package limits_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/lab"
)

// S18: two commands with 10 MB/s each write to one disk at once, and both hold.
func TestTwoCommandsOnOneDisk(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	for i := range 2 {
		t.Run(fmt.Sprint("command-", i+1), func(t *testing.T) {
			t.Parallel()
			rate := lab.Scaled(e, 10e6)
			job := load.Job{Path: load.Direct, File: fileIn(t, disk.Dir, "f"), Block: 32 << 10, Size: directFile, Warm: warm, For: window}
			lab.Ratio(t, "direct write", float64(rate), lab.Written, func() float64 {
				return limited(t, []string{"--write", fmt.Sprint(rate), "--on", disk.Dir}, job).BytesPerSec()
			})
		})
	}
}

// S30: the read and the write limit of one group are independent.
func TestReadAndWriteAreIndependent(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Long, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	file := fileIn(t, disk.Dir, "f")
	filled(t, file, directFile)
	reads, writes := lab.Scaled(e, 8e6), lab.Scaled(e, 2e6)
	limits := []string{"--read", fmt.Sprint(reads), "--write", fmt.Sprint(writes), "--on", disk.Dir}
	for _, c := range []struct {
		read bool
		rate int
	}{{true, reads}, {false, writes}} {
		job := load.Job{Path: load.Direct, Read: c.read, File: file, Block: blockFor(c.rate), Size: directFile, Warm: warm, For: window}
		lab.Ratio(t, fmt.Sprint("read ", c.read), float64(c.rate), lab.Direct, func() float64 { return limited(t, limits, job).BytesPerSec() })
	}
}

// set on a running writer takes effect within a second, changes only what it names,
// and clear frees the writer again.
func TestSetAndClearWhileItRuns(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Long, lab.FS("ext4"))
	rate := lab.Scaled(e, 5e6)
	asked := fmt.Sprint(rate)
	disk := lab.Disk(t, lab.FS("ext4"))
	file := fileIn(t, disk.Dir, "f")
	job := load.Job{Path: load.Direct, File: file, Block: 32 << 10, Size: directFile, For: 10 * time.Minute}
	cmd := exec.Command("weir", append([]string{"run", "--quiet", "--read", "3MB/s", "--name", "live", "--on", disk.Dir, "--", "weir", "__load"}, job.Args()...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(terminate)
		_ = cmd.Wait()
	})
	group := waitForGroup(t, "weir-live")
	written := func() float64 { return deviceRate(t, disk, time.Second) }
	lab.Free(t, "before set", float64(3*rate), written)
	weir(t, "set", group, "--write", asked, "--on", disk.Dir)
	time.Sleep(time.Second) // what the promise allows
	lab.Ratio(t, "after set", float64(rate), lab.Written, func() float64 { return deviceRate(t, disk, 3*time.Second) })
	shown := string(weir(t, "show", "--json", "--for", "0", group))
	if !strings.Contains(shown, `"rbps":3000000,"wbps":`+asked) {
		t.Errorf("show says %s, want the read limit untouched beside the new one", shown)
	}
	weir(t, "set", group, "--write", "max", "--on", disk.Dir)
	time.Sleep(time.Second)
	lab.Free(t, "after --write max", float64(2*rate), written)
	weir(t, "set", group, "--write", asked, "--on", disk.Dir)
	weir(t, "clear", group)
	time.Sleep(time.Second)
	lab.Free(t, "after clear", float64(2*rate), written)
	if shown := string(weir(t, "show", "--json", "--for", "0", group)); !strings.Contains(shown, `"devices":[]`) {
		t.Errorf("after clear, show says %s", shown)
	}
}
