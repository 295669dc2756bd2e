package agree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// The kernel charges the writeback of a file to the group that dirtied the file first. When
// a target writes to such a file, weir prove sees that the target wrote more than it was
// charged for. It says not held where nobody else can have been charged (the other group is
// gone), or where the kernel tells whose the file is. weir why names the same reason.
func TestAgreeOnForeignInodes(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V2, lab.Memory, lab.NoSystemd, lab.FS("ext4"))
	if e.Has("bpf") { // by which the kernel tells
		lab.Need(t, lab.BPF)
	} else {
		lab.Need(t, lab.Once)
	}
	for name, gone := range map[string]bool{"there": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := lab.Disk(t, lab.FS("ext4"))
			file := filepath.Join(disk.Dir, "f")
			first, target := newGroup(t, e.Cgroups.Unified, "agree-first-"+name), newGroup(t, e.Cgroups.Unified, "agree-"+name)
			if err := start(t, first, `exec dd if=/dev/zero bs=64k count=64 conv=fsync of="$1" 2>/dev/null`, file).Wait(); err != nil {
				t.Fatal(err)
			}
			keep(t, file)
			if gone {
				lab.Await(t, 10*time.Second, "the first group to be empty", func() bool { return os.Remove(first) == nil })
			}
			if err := os.WriteFile(filepath.Join(target, "io.max"), []byte(disk.Number.String()+" wbps=200000"), 0); err != nil {
				t.Fatal(err)
			}
			endless := start(t, target, `exec weir __load sync write file="$1" block=65536 size=4194304 for=1h >/dev/null`, file)
			foreign(t, "cgroup:/agree-"+name, file, gone)
			_ = endless.Process.Kill()
			_ = endless.Wait() // killed
		})
	}
}

// foreign compares what is said of a target that writes to a file of another group.
func foreign(t *testing.T, target, file string, gone bool) {
	t.Helper()
	said := ask(t, target, "--on", file)
	i := slices.IndexFunc(said.Matrix, func(c cell) bool { return c.Path == "sync" && !c.Read })
	codes := said.codes(said.Matrix[i].Findings)
	known := slices.Contains(codes, "foreign-inode")
	if !known && !slices.Contains(codes, "inode-not-known") {
		t.Errorf("weir why says of synchronous writes %q, because of %v", said.Matrix[i].Held, codes)
	}
	proof := prove(t, target, "--observe", "2s")
	r, want := proof.Rows[0], [2]string{"cannot tell", "others"}
	if gone || known {
		want = [2]string{"not held", "escaped"}
	}
	if r.Verdict != want[0] || r.Reason != want[1] {
		t.Errorf("weir prove says %q, %q; want %q", r.Verdict, r.Reason, want)
	}
	if len(proof.Findings) == 0 || proof.Findings[0].Code != "foreign-inode" && proof.Findings[0].Code != "inode-not-known" {
		t.Errorf("weir prove names %+v", proof.Findings)
	}
}

// newGroup makes a group with the io controller.
func newGroup(t *testing.T, root, name string) (dir string) {
	t.Helper()
	dir = filepath.Join(root, name)
	if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
		t.Fatal(err)
	}
	lab.Cgroup(t, dir)
	return dir
}

// start starts a shell's command on a file in a group. The first group's writes all of
// the file: the kernel goes by whose most of its pages are.
func start(t *testing.T, group, command, file string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", `echo $$ > "$0/cgroup.procs" && `+command, group, file)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// keep keeps the file's inode in memory.
func keep(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
}
