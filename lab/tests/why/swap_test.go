package why_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

const (
	swapShare  = 96 << 20  // what each of two groups needs
	swapMemory = 160 << 20 // what both have together
	swapLimit  = 4_000_000 // bytes per second; what has to be swapped out takes 8 s
	swapWaits  = 4 * time.Second
)

// A limited group's memory goes to swap at its limit's rate. Another group that needs the memory
// waits for that, or is killed, and weir why says so.
func TestWhySwappedOut(t *testing.T) {
	lab.Need(t, lab.Root, lab.Guest, lab.V2, lab.Memory, lab.NoSystemd, lab.Once, lab.Rates, lab.Command("mkswap"), lab.Command("swapon"), lab.Command("swapoff"))
	disk := lab.RawDisk(t)
	tool(t, "mkswap", disk.Node, "1048576") // KiB: what lies beyond is written below
	tool(t, "swapon", disk.Node)
	t.Cleanup(func() { tool(t, "swapoff", disk.Node) })
	both := newGroup(t, nil, "why-swapped", "io", "memory")
	both.set(t, "memory.max", strconv.Itoa(swapMemory))
	idle, needs := newGroup(t, &both, "idle", "io", "memory"), newGroup(t, &both, "needs", "io", "memory")
	needs.set(t, "memory.swap.max", "0")
	if _, err := os.Stat(filepath.Join(idle.dir, "memory.zswap.max")); err == nil {
		idle.set(t, "memory.zswap.max", "0") // else it may never reach the disk
	}
	t.Cleanup(func() { idle.limit(t, disk, "max") })

	free, _ := swapsFor(t, idle, needs, func() {})
	idle.limit(t, disk, strconv.Itoa(swapLimit))
	explain(t, "cgroup:"+idle.path, "--on", disk.Node).gone(t, "swapped-out")
	var said finding
	limited, killed := swapsFor(t, idle, needs, func() {
		said = explain(t, "cgroup:"+idle.path, "--on", disk.Node).want(t, "swapped-out", "hurts")
	})
	t.Logf("the other group had its memory after %s, and beside a limit of %d bytes per second after %s (killed: %t)", free, swapLimit, limited, killed)
	if free > swapWaits {
		t.Errorf("without a limit it took %s", free)
	}
	if waits := strings.Contains(said.Text, "That waits for the limit on writes"); waits != (limited >= swapWaits || killed) {
		t.Errorf("with a limit it took %s, and weir why says: %s", limited, said.Text)
	}
	if strings.Contains(said.Text, "the group's next writes wait") {
		began := time.Now()
		if err := inGroup(t, idle, "dd", "if=/dev/zero", "of="+disk.Node, "bs=64k", "seek=32k", "count=1", "oflag=direct", "conv=notrunc").Wait(); err != nil { // far beyond the swap
			t.Fatal(err)
		}
		took := time.Since(began)
		t.Logf("the group's next write took %s", took)
		if took < swapWaits/4 {
			t.Errorf("the group's next write took %s", took)
		}
	}

	// Who has ended has nothing in swap.
	explain(t, "cgroup:"+idle.path, "--on", disk.Node).gone(t, "swapped-out")
}

// swapsFor has one group hold memory and another one need as much. It returns how long that
// took, and whether it was killed for it. Then both end.
func swapsFor(t *testing.T, idle, needs group, meanwhile func()) (took time.Duration, killed bool) {
	t.Helper()
	bs := "bs=" + strconv.Itoa(swapShare)
	// Since 0ca0c24e3211 (6.12) pages of zeros are not written.
	holder := inGroup(t, idle, "sh", "-c", `tr '\0' x </dev/zero | dd `+bs+" count=1 iflag=fullblock 2>/dev/null | sleep 600")
	defer func() {
		_ = unix.Kill(-holder.Process.Pid, unix.SIGKILL)
		_ = holder.Wait()
		lab.Await(t, 30*time.Second, "the group to be empty", func() bool { return strings.Contains(idle.get(t, "cgroup.events"), "populated 0") })
	}()
	lab.Await(t, 30*time.Second, "the idle group to have its memory", func() bool {
		n, err := strconv.Atoi(idle.get(t, "memory.current"))
		return err == nil && n >= swapShare
	})
	began := time.Now()
	err := inGroup(t, needs, "dd", "if=/dev/zero", "of=/dev/null", bs, "count=1").Wait()
	took = time.Since(began)
	if n, err := strconv.Atoi(idle.get(t, "memory.swap.current")); err != nil || n == 0 {
		t.Errorf("nothing was swapped out: %d, %v", n, err)
	}
	meanwhile()
	return took, err != nil
}

// inGroup starts a program in a group.
func inGroup(t *testing.T, g group, program string, args ...string) *exec.Cmd {
	t.Helper()
	dir, err := os.Open(g.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd()), Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}
