package pacer

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
)

// A limited group that is gone is an error, on both versions, and so is another one that has
// its name.
func TestALimitedGroupThatIsGone(t *testing.T) {
	for version, dir := range map[cgroupfs.Version]string{cgroupfs.V1: cgrouptest.V1Dir, cgroupfs.V2: cgrouptest.V2Dir} {
		files := map[string]string{dir + "/a/cgroup.procs": "", dir + "/a/cgroup.type": "domain\n", dir + "/a/b/cgroup.procs": "", dir + "/a/b/cgroup.type": "domain\n"}
		h := cgrouptest.New(t, version, files)
		r := roster{limited: h.Group("/a"), name: "x"}
		if _, _, err := r.look(time.Second); err != nil {
			t.Fatalf("%s: %v", version, err)
		}
		top := filepath.Join(h.Root, dir)
		if err := os.RemoveAll(top + "/a/b"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.look(2 * time.Second); err != nil {
			t.Errorf("%s: a group below is gone: %v", version, err)
		}
		if err := os.Rename(top+"/a", top+"/old"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.look(3 * time.Second); !cgroupfs.IsGone(err) {
			t.Errorf("%s: it is gone: %v", version, err)
		}
		for name, text := range files {
			h.Write(name, text)
		}
		if _, _, err := r.look(4 * time.Second); !cgroupfs.IsGone(err) {
			t.Errorf("%s: another has its name: %v", version, err)
		}
	}
}

// While the pacer moves one process, after it has listed them, a child of theirs is born, and another process joins
// them that has written elsewhere: the child is counted from its first byte on, and the other one is not.
func TestBornBehindTheList(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	const waits = "read go; echo $$ before; read end" // the child says what its number is
	member, ask, told := talking(t, "read go; sh -c '"+waits+"'; exit")
	m := &written{limited: h.Group("/a"), folios: folios{load: func() (Parts, error) { return nil, errLoading }}}
	defer m.close()
	look := func(listed time.Duration, members ...int) {
		if _, err := m.look(listed, members); err != nil {
			t.Fatal(err)
		}
	}
	look(clockNow(), member)
	listed := clockNow()
	time.Sleep(20 * time.Millisecond) // two of the ticks by which the kernel tells when a process began
	stranger, askOther, toldOther := talking(t, waits)
	ask("go", "go")
	askOther("go")
	var child int
	if _, err := fmt.Fscan(told, &child); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscan(toldOther, new(int)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	look(listed, member)
	look(clockNow(), member, child, stranger)
	most := uint64(len(fmt.Sprintln(child, "before")))
	if got := m.before.WChar; got != most {
		t.Errorf("they have written %d bytes since, want %d", got, most)
	}
}

// talking starts a shell. ask gives it lines, and told is what it says.
func talking(t *testing.T, script string) (pid int, ask func(lines ...string), told io.Reader) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // ends it
		_ = cmd.Wait()
	})
	return cmd.Process.Pid, func(lines ...string) {
		for _, line := range lines {
			if _, err := fmt.Fprintln(in, line); err != nil {
				t.Error(err)
			}
		}
	}, out
}
