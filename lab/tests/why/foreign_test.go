package why_test

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// made writes a file in a group, brings it to the disk, and keeps it open: the kernel
// does not forget its inode.
func made(t *testing.T, g group, file string) {
	t.Helper()
	if err := start(t, g, "once", 60, file).Wait(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// reaches is how much of a disk is written a second, whoever does it.
func reaches(t *testing.T, disk *lab.TestDisk, window time.Duration) float64 {
	t.Helper()
	_, before := lab.DeviceBytes(t, disk.Number)
	began := time.Now()
	time.Sleep(window)
	_, after := lab.DeviceBytes(t, disk.Number)
	return float64(after-before) / time.Since(began).Seconds()
}

// ownedBy fails unless the one foreign file is this one, and one of the words says whose.
func (f finding) ownedBy(t *testing.T, file string, words ...string) {
	t.Helper()
	if len(f.Evidence) != 1 || f.Evidence[0].File != file || !strings.HasPrefix(f.Evidence[0].Value, "inode ") {
		t.Fatalf("evidence %+v, want %s", f.Evidence, file)
	}
	for _, w := range words {
		if strings.HasSuffix(f.Evidence[0].Value, "charged to "+w) {
			t.Log(f.Evidence[0].Value)
			return
		}
	}
	t.Errorf("%s: %s, want one of %q", file, f.Evidence[0].Value, words)
}

// One group made a file, and another one writes to it. The second group's limit holds
// nothing of that until the file is moved to it.
func TestWhyForeignInode(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g, first := limited(t, "why-foreign", disk), newGroup(t, nil, "why-first")
	file := filepath.Join(disk.Dir, "f")
	made(t, first, file)
	writer := start(t, g, "writeback", 600, file)
	r := explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	f := r.want(t, "foreign-inode", "breaks")
	f.ownedBy(t, file, "cgroup /why-first")
	for path, want := range map[string]string{"sync": "no", "buffered": "no", "mapped": "no", "direct": "yes"} {
		if got := r.held(path, false); got != want {
			t.Errorf("%s write: %q, want %q", path, got, want)
		}
	}
	lab.Ratio(t, "another's file", 2e6, lab.Band{Low: 1.5, High: math.Inf(1)}, func() float64 { return reaches(t, disk, time.Second) })

	if err := os.Remove(first.dir); err != nil {
		t.Fatal(err)
	}
	// It ends with 0 only if all holds then.
	out := f.paste(t, "weir why cgroup:/why-foreign --on "+disk.Dir+" --mend")
	t.Log(out)
	moved := file + ": charged to cgroup /why-foreign now, and no longer to "
	if !strings.Contains(out, moved+"a removed group (/why-first)") && !strings.Contains(out, moved+"the root group") || strings.Contains(out, "foreign-inode") {
		t.Errorf("after --mend the file is not the group's")
	}
	lab.Ratio(t, "its own file", 2e6, lab.Band{Low: 0.8, High: 1.1}, func() float64 { return reaches(t, disk, 2*time.Second) })
	if err := writer.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = writer.Wait() // it was killed
}

// A group's limit also holds the writeback of its child groups, even removed ones.
func TestWhyForeignInodeBelow(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.BPF, lab.NoSystemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	above := limited(t, "why-above", disk)
	first, second := newGroup(t, &above, "first", "io", "memory"), newGroup(t, &above, "second")
	file := filepath.Join(disk.Dir, "f")
	made(t, first, file)
	if err := os.Remove(first.dir); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("weir", "why", "cgroup:"+second.path, "--on", file, "--mend", "--dry-run", "--json").Output()
	if err != nil || !strings.Contains(string(out), `"file":"`+file+`"`) || !strings.Contains(string(out), `"to":"/why-above/second"`) {
		t.Errorf("--dry-run: %v, %s", err, out)
	}
	// A group of its own, which weir run would make, is another one in any case.
	explain(t, file, "--write", "1MB/s", "--hold", "kernel").want(t, "foreign-inode", "breaks").ownedBy(t, file, "a removed group (/why-above/first)", "cgroup /why-above")
	writer := start(t, second, "writeback", 600, file)
	r := explain(t, "cgroup:"+above.path, "--on", disk.Dir)
	r.gone(t, "foreign-inode")
	if r.status != 0 || r.held("sync", false) != "yes" {
		t.Errorf("status %d, findings %v", r.status, r.codes())
	}
	lab.Ratio(t, "a file of a group below", 2e6, lab.Band{Low: 0.8, High: 1.1}, func() float64 { return reaches(t, disk, 2*time.Second) })
	if err := writer.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = writer.Wait() // it was killed
}

// If weir cannot read a file's owner, it does not say that writes to the file are held. Of a
// target's open files it only says that it cannot tell.
func TestWhyInodeNotKnown(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.Lane("uml"), lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g, other := limited(t, "why-foreign", disk), newGroup(t, nil, "why-first")
	file := filepath.Join(disk.Dir, "f")
	made(t, other, file)
	r := explain(t, "cgroup:"+g.path, "--on", file)
	r.want(t, "inode-not-known", "note")
	if r.status != 3 || r.held("sync", false) != "unknown" || r.held("direct", false) != "yes" {
		t.Errorf("status %d, %+v", r.status, r.Matrix)
	}
	if got := rate(t, g, disk, "sync", 1, file) / 2e6; got < 2 {
		t.Errorf("synchronous writes got %.2f of the limit: they are held, where weir why cannot say so", got)
	}
	writer := start(t, g, "buffered", 600, file)
	r = explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.want(t, "inode-not-known", "note")
	if r.status != 0 || r.held("sync", false) != "yes" {
		t.Errorf("status %d, %+v", r.status, r.Matrix)
	}
	if err := writer.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = writer.Wait() // it was killed
}
