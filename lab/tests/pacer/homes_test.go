package pacer_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// someUser is an unprivileged one.
const someUser = 65534

// A command that was paced on v2 leaves neither a record nor a pacer.
func TestNothingIsLeftOnV2(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2, lab.NoSystemd, lab.Newest, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	file := filepath.Join(disk.Dir, "f")
	weir(t, "run", "--hold", "pacer", "--write", "4MiB/s", "--on", disk.Dir, "--", "sh", "-c", fill(file, 1<<20)+" && sync -f "+file) // else its group stays for what is in memory
	lab.Await(t, 30*time.Second, "the end of the pacer, and of its record", func() bool {
		records, err := filepath.Glob("/run/weir/pace.*")
		return err == nil && len(records)+len(lab.Called(t, "__pacer")) == 0
	})
}

// filesIn counts how many files of 32 MiB a writer writes in a while.
func (o owned) filesIn(d time.Duration) (files int) {
	last := int64(0)
	for began := time.Now(); time.Since(began) < d; time.Sleep(time.Millisecond) {
		now := size(o.file)
		if now < last {
			files++
		}
		last = now
	}
	return files
}

// asUser runs a program as somebody who is not root.
func asUser(name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someUser, Gid: someUser}}
	return cmd.Run()
}

// The owner of a delegated group can make groups below those that weir makes, but cannot
// release processes that weir paused, also if the owner made that group beforehand.
func TestACellInADelegatedGroup(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V2, lab.NoSystemd, lab.Newest, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	o := newOwned(t, e, disk.Dir, "lab-theirs")
	top := filepath.Dir(o.procs)
	for _, file := range []string{top, o.procs, top + "/cgroup.subtree_control"} {
		if err := os.Chown(file, someUser, someUser); err != nil {
			t.Fatal(err)
		}
	}
	set := []string{"set", o.target, "--write", fmt.Sprint(lab.Scaled(e, 4<<20)), "--on", disk.Dir, "--hold", "pacer"}
	var cell string
	for _, beforehand := range []bool{false, true} {
		if beforehand {
			if err := asUser("mkdir", cell, cell+"/more"); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(cell+"/more/cgroup.procs", fmt.Append(nil, o.writer.Process.Pid), 0); err != nil {
				t.Fatal(err)
			}
		}
		weir(t, set...)
		cell = o.children(t)[0]
		if err := asUser("sh", "-c", "echo 0 > "+cell+"/cgroup.freeze"); err == nil {
			t.Errorf("made beforehand: %v: its owner can let go who is stopped", beforehand)
		}
		if err := asUser("mkdir", cell+"/own"); err != nil {
			t.Errorf("made beforehand: %v: its owner can make no group in it: %v", beforehand, err)
		} else if err := asUser("rmdir", cell+"/own"); err != nil {
			t.Error(err)
		}
		if n := o.filesIn(2 * time.Second); n > 1 {
			t.Errorf("made beforehand: %v: it wrote %d files of 32 MiB in 2 s", beforehand, n)
		}
		weir(t, "clear", o.target)
		lab.Await(t, 5*time.Second, "weir's groups to be gone", func() bool { return len(o.children(t)) == 0 })
	}
}

// If the owner of one group lets nobody make groups in it, the pacer holds the other groups,
// and weir says that this one is not held.
func TestAGroupThatCannotBeStopped(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V2, lab.NoSystemd, lab.Newest, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	o := newOwned(t, e, disk.Dir, "lab-closed")
	closed := filepath.Join(filepath.Dir(o.procs), "none")
	lab.Cgroup(t, closed)
	if err := os.WriteFile(closed+"/cgroup.max.depth", []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "100")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	})
	if err := os.WriteFile(closed+"/cgroup.procs", fmt.Append(nil, sleeper.Process.Pid), 0); err != nil {
		t.Fatal(err)
	}
	const want = "processes of cgroup /lab-closed/none cannot be paused"
	said := weir(t, "set", o.target, "--write", fmt.Sprint(lab.Scaled(e, 4<<20)), "--on", disk.Dir, "--hold", "pacer")
	if !strings.Contains(said, want) {
		t.Errorf("weir set said %q, want %q in it", said, want)
	}
	if n := o.filesIn(2 * time.Second); n > 1 {
		t.Errorf("it wrote %d files of 32 MiB in 2 s", n)
	}
	if said := weir(t, "show", o.target, "--for", "0"); !strings.Contains(said, want) {
		t.Errorf("weir show said %q, want %q in it", said, want)
	}
	weir(t, "clear", o.target)
}
