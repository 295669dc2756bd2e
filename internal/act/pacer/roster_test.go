package pacer

import (
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

// A process that was born while the pacer moved another one, after it had listed them, is counted from its first
// byte on.
func TestBornBehindTheList(t *testing.T) {
	h := newHost(t, cgroupfs.V2)
	m := &written{limited: h.Group("/a"), folios: folios{load: func() (Parts, error) { return nil, errLoading }}}
	defer m.close()
	if _, err := m.look(clockNow(), nil); err != nil {
		t.Fatal(err)
	}
	listed := clockNow()
	time.Sleep(20 * time.Millisecond) // two of the ticks by which the kernel tells when a process began
	writer := exec.Command("sh", "-c", "echo before; read end")
	in, err := writer.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := writer.StdoutPipe()
	if err == nil {
		err = writer.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close() // ends it
		_ = writer.Wait()
	}()
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	for _, at := range []struct {
		listed  time.Duration
		members []int
	}{{listed, nil}, {clockNow(), []int{writer.Process.Pid}}} {
		if _, err := m.look(at.listed, at.members); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.before.WChar; got < uint64(len("before\n")) {
		t.Errorf("it has written %d bytes", got)
	}
}
