package attack_test

import (
	"errors"
	"fmt"
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

func init() {
	attacks["processes that are stopped"] = func([]string) error {
		for _, traced := range []bool{false, true} {
			child := exec.Command("sleep", "600")
			child.SysProcAttr = &syscall.SysProcAttr{Ptrace: traced} // who is traced stops when it has executed
			if err := child.Start(); err != nil {
				return err
			}
			if err := child.Process.Signal(unix.SIGSTOP); err != nil {
				return err
			}
		}
		return nil
	}
	attacks["a process that moves"] = func(args []string) error {
		one, two := filepath.Join(args[0], "one"), filepath.Join(args[0], "two")
		if err := errors.Join(os.Mkdir(one, 0o755), os.Mkdir(two, 0o755)); err != nil {
			return err
		}
		child := exec.Command("sleep", "600")
		if err := child.Start(); err != nil {
			return err
		}
		pid := []byte(strconv.Itoa(child.Process.Pid))
		if err := os.WriteFile(filepath.Join(one, "cgroup.procs"), pid, 0); err != nil {
			return err
		}
		go func() {
			for {
				for _, dir := range []string{two, one} {
					_ = os.WriteFile(filepath.Join(dir, "cgroup.procs"), pid, 0)
				}
			}
		}()
		return nil
	}
	attacks["a group that may have none below"] = func(args []string) error {
		return own2(args[0], "closed", map[string]string{"cgroup.max.descendants": "0", "cgroup.max.depth": "0"})
	}
	attacks["a threaded group"] = func(args []string) error {
		return own2(args[0], "threaded", map[string]string{"cgroup.type": "threaded"})
	}
	attacks["a group that its owner pauses"] = func(args []string) error {
		child := exec.Command("sleep", "600")
		if err := child.Start(); err != nil {
			return err
		}
		dir := filepath.Join(args[0], "paused")
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)), 0)); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte("1"), 0); err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			return err // v1 has no such file, and makes none
		}
		return nil
	}
	attacks["many files that are watched"] = func(args []string) error { // the descriptor's fdinfo has a line for each
		watches, err := unix.InotifyInit1(0)
		if err != nil {
			return err
		}
		for n := range 4000 {
			name := filepath.Join(args[0], "watched"+strconv.Itoa(n))
			if err := os.WriteFile(name, nil, 0o644); err != nil {
				return err
			}
			if _, err := unix.InotifyAddWatch(watches, name, unix.IN_OPEN); err != nil {
				return err
			}
		}
		return nil
	}
}

// own2 makes a group of the user's own on v2, writes its files, and moves a child there.
func own2(above, name string, files map[string]string) error {
	dir := filepath.Join(above, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0); err != nil && !errors.Is(err, os.ErrPermission) && !errors.Is(err, unix.EOPNOTSUPP) {
			return err // v1 has no such file, and makes none
		}
	}
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(child.Process.Pid)), 0)
}

// pacerMost is the memory that a process of the pacer may have, in KiB.
const pacerMost = 200 << 10

// Whatever a user's processes and groups are, they can be limited, paced and let go, and neither
// weir nor its pacer waits for them or fills memory.
func TestProcessesOfAUser(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Guest, lab.Once, lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	dir := home(t, disk)
	for _, c := range []struct {
		attack string
		args   []string
	}{
		{"processes that are stopped", nil}, {"a process that moves", nil}, {"a group that may have none below", nil},
		{"a threaded group", nil}, {"a group that its owner pauses", nil}, {"many files that are watched", []string{dir}},
	} {
		t.Run(c.attack, func(t *testing.T) {
			group, path := made(t, e.Cgroups, "attacked")
			t.Cleanup(func() { emptied(t, group) })
			delegate(t, group, user)
			if e.Cgroups.IOInV2 {
				if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
					t.Fatal(err)
				}
			}
			inside := filepath.Join(group, "inside")
			delegate(t, inside, user)
			a := start(t, nil, append([]string{c.attack}, append(c.args, group)...)...)
			enter(t, inside, a.cmd.Process.Pid)
			a.begin(t)
			works(t, "set", "pid:"+a.pid(), "--write", "7MB/s", "--on", disk.Dir, "--hold", "kernel", "--whole-cgroup")
			if rule := ruleOf(t, e.Cgroups, inside, disk); !strings.Contains(rule, "7000000") {
				t.Errorf("the process's group has %q", rule)
			}
			for _, hold := range []string{"kernel", "pacer"} {
				// A pacer that cannot be had is an answer.
				if said, status := weir(t, "set", "cgroup:"+path+"/inside", "--write", "7MB/s", "--on", disk.Dir, "--hold", hold); status != 0 && (hold == "kernel" || status < 0 || status == 2 || status > 3 || said == "") {
					t.Errorf("set --hold %s: status %d\n%.2000s", hold, status, said)
				}
				works(t, "show", "--for", "0")
				if said, status := weir(t, "why", "pid:"+a.pid(), "--hold", "kernel"); status > 1 || strings.Count(said, "\n") > 200 {
					t.Errorf("why: status %d\n%.2000s", status, said)
				}
			}
			entries, err := os.ReadDir(group)
			if err != nil {
				t.Fatal(err)
			}
			for _, below := range entries { // those that the user has made
				if !below.IsDir() || below.Name() == "inside" {
					continue
				}
				spec := "cgroup:" + path + "/" + below.Name()
				if said, status := weir(t, "set", spec, "--write", "7MB/s", "--on", disk.Dir); status < 0 || status == 2 || status > 3 {
					t.Errorf("set %s: status %d\n%.2000s", spec, status, said)
				}
				if said, status := weir(t, "clear", spec); status < 0 || status == 2 || status > 3 {
					t.Errorf("clear %s: status %d\n%.2000s", spec, status, said)
				}
			}
			if frozen, err := os.ReadFile(filepath.Join(group, "paused/cgroup.freeze")); err == nil && strings.TrimSpace(string(frozen)) != "1" {
				t.Errorf("weir ends its owner's pause: cgroup.freeze is %q", frozen)
			}
			for _, pid := range pacers(t) {
				if kb := resident(pid); kb > pacerMost {
					t.Errorf("process %s of the pacer has %d KiB", pid, kb)
				}
			}
			completed(t, a.pid())
			works(t, "clear", "cgroup:"+path+"/inside")
			if rule := ruleOf(t, e.Cgroups, inside, disk); rule != "" {
				t.Errorf("after clear: %q", rule)
			}
		})
	}
}

// resident is the memory of a process in KiB; 0 if it has ended.
func resident(pid string) (kb int) {
	text, _ := os.ReadFile("/proc/" + pid + "/status")
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	_, _ = fmt.Sscan(rest, &kb)
	return kb
}

// completed asks for what a shell would complete: processes, by what they are called.
func completed(t *testing.T, pid string) {
	t.Helper()
	began := time.Now()
	out, err := exec.Command("weir", "__complete", "set", "pid:").Output()
	if err != nil || !strings.Contains(string(out), "pid:"+pid+"\t") {
		t.Errorf("pid:%s is not among what is completed: %v\n%.500s", pid, err, out)
	}
	if took := time.Since(began); took > soon {
		t.Errorf("completion took %s", took)
	}
}
