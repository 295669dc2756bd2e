package pacer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A running process is held, with its children and with processes that join its group later.
// why and show say by what. After weir clear it runs freely, where it was.
func TestSetAndClear(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.FS("ext4"))
	fewer(t, e)
	if e.Lane == "native" {
		lab.Need(t, lab.Long)
	}
	disk := lab.Disk(t, lab.FS("ext4"))
	group := filepath.Join(e.Cgroups.Blkio, "lab-paced")
	lab.Cgroup(t, group)
	writer := exec.Command("sh", "-c", "echo $$ > "+group+"/cgroup.procs; while :; do dd if=/dev/zero of="+disk.Dir+"/f bs=16384 count=2048 iflag=fullblock status=none; rm "+disk.Dir+"/f; done")
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = writer.Process.Kill()
		_ = writer.Wait()
	})
	lab.Await(t, 20*time.Second, "the first write", func() bool { return size(disk.Dir+"/f") > 0 })
	home := freezerOf(t, writer.Process.Pid)
	rate := lab.Scaled(e, 4<<20)
	target := "cgroup:/lab-paced"
	if said := weir(t, "set", target, "--write", fmt.Sprint(rate), "--on", disk.Dir, "--hold", "pacer"); !strings.Contains(said, "buffered writes by weir's pacer") {
		t.Errorf("weir set said %q", said)
	}
	if now := freezerOf(t, writer.Process.Pid); now == home || filepath.Dir(now) != filepath.Clean(home) {
		t.Errorf("it is stopped in %s, and was in %s", now, home)
	}
	if said := weir(t, "show", target, "--for", "0"); !strings.Contains(said, "by weir's pacer") {
		t.Errorf("weir show said %q", said)
	}
	why := exec.Command("weir", "why", target, "--on", disk.Dir)
	out, err := why.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "paced (note)") {
		t.Errorf("weir why: %v\n%s", err, out)
	}
	// It writes less than one file in the time that writing without a limit takes for many.
	began, files := time.Now(), 0
	for last := int64(0); time.Since(began) < 2*time.Second; time.Sleep(time.Millisecond) {
		now := size(disk.Dir + "/f")
		if now < last {
			files++
		}
		last = now
	}
	if most := int(2*float64(rate)/(2048*16384)) + 2; files > most {
		t.Errorf("it wrote %d files of 32 MiB in 2 s at %d bytes a second", files, rate)
	}
	weir(t, "clear", target)
	lab.Await(t, 5*time.Second, "its own place", func() bool { return freezerOf(t, writer.Process.Pid) == home })
	if said := weir(t, "show", target, "--for", "0"); strings.Contains(said, "pacer") {
		t.Errorf("after weir clear, weir show said %q", said)
	}
	before := time.Now()
	for seen := 0; seen < 3; {
		if size(disk.Dir+"/f") == 0 {
			seen++
			lab.Await(t, 20*time.Second, "the next file", func() bool { return size(disk.Dir+"/f") > 0 })
		}
	}
	t.Logf("freely, 3 files in %s", time.Since(before))
}

// freezerOf is the group of a process in v1's hierarchy of the freezer.
func freezerOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, path, found := strings.Cut(strings.TrimSpace(line), ":freezer:"); found {
			return path
		}
	}
	t.Fatalf("process %d is in no group of the freezer:\n%s", pid, text)
	return ""
}
