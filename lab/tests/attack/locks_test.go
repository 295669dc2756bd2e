package attack_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// ownDirs are weir's directories.
var ownDirs = []string{"/run/weir", "/var/lib/weir", "/var/lib/weir/limits", "/var/lib/weir/volumes", "/var/lib/weir/volumes/.records", "/var/lib/weir/quotas"}

func init() {
	attacks["flock"] = func([]string) error {
		for _, dir := range ownDirs {
			_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { // all that can be opened
				if f, err := os.Open(path); err == nil {
					_ = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
					held = append(held, f)
				}
				return nil
			})
		}
		return nil
	}
	attacks["write"] = func([]string) error {
		for _, dir := range ownDirs {
			for _, name := range []string{"run.1.json", "locks", "pacer.lock", "x.making"} {
				path := filepath.Join(dir, name)
				if f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err == nil {
					_ = f.Close()
					return fmt.Errorf("%s can be written", path)
				}
				if err := unix.Mkfifo(path, 0o666); err == nil || os.Remove(path) == nil {
					return fmt.Errorf("%s can be made, or removed", path)
				}
			}
		}
		return nil
	}
	attacks["ask the pacer"] = func([]string) error {
		if conn, err := net.Dial("unix", "/run/weir/pacer.sock"); err == nil {
			_ = conn.Close()
			return errors.New("it answers")
		}
		return nil
	}
	attacks["kill"] = func(args []string) error {
		for _, pid := range args {
			n, err := strconv.Atoi(pid)
			if err != nil {
				return err
			}
			for _, s := range []unix.Signal{unix.SIGSTOP, unix.SIGTERM, unix.SIGKILL} {
				if err := unix.Kill(n, s); !errors.Is(err, unix.EPERM) {
					return fmt.Errorf("process %d takes %s: %w", n, unix.SignalName(s), err)
				}
			}
			if err := unix.PtraceSeize(n); !errors.Is(err, unix.EPERM) {
				return fmt.Errorf("process %d can be traced: %w", n, err)
			}
			if f, err := os.OpenFile("/proc/"+pid+"/mem", os.O_RDWR, 0); err == nil {
				_ = f.Close()
				return fmt.Errorf("the memory of process %d can be written", n)
			}
		}
		return nil
	}
	attacks["squat"] = func(args []string) error { return os.Mkdir(args[0], 0o755) }
}

// Nobody but root can hold a lock that weir uses, write its records, or reach its pacer.
func TestRootsOwn(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Guest, lab.Once, lab.NoSystemd, lab.Loop)
	disk := lab.Disk(t, lab.FS("ext4"))
	home(t, disk) // so that others can reach the disk
	group, path := made(t, e.Cgroups, "owned")
	sleeper := exec.Command("sleep", "600")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() })
	enter(t, group, sleeper.Process.Pid)
	works(t, "volume", "create", "first", "--on", disk.Dir, "--size", "16MiB") // makes the directories
	t.Cleanup(func() { works(t, "volume", "down", "first"); works(t, "volume", "delete", "first") })
	t.Run("locks", func(t *testing.T) {
		if err := os.MkdirAll("/var/lib/weir/limits", 0o755); err != nil {
			t.Fatal(err)
		}
		start(t, nil, "flock").begin(t)
		works(t, "restore")
		works(t, "volume", "list")
		works(t, "volume", "create", "second", "--on", disk.Dir, "--size", "16MiB")
		works(t, "volume", "down", "second")
		works(t, "volume", "delete", "second")
		works(t, "set", "cgroup:"+path, "--write", "9MB/s", "--on", disk.Dir)
		works(t, "clear", "cgroup:"+path)
	})
	t.Run("records", func(t *testing.T) {
		start(t, nil, "write").begin(t)
		works(t, "show", "--for", "0")
	})
	t.Run("the pacer", func(t *testing.T) {
		if e.Cgroups.IOInV2 {
			t.Log("here it holds what escapes the kernel, where BPF can be had")
		}
		said, status := weir(t, "set", "cgroup:"+path, "--write", "9MB/s", "--on", disk.Dir, "--hold", "pacer")
		if status != 0 {
			t.Skipf("no pacer here: %s", said)
		}
		pids := pacers(t)
		if len(pids) == 0 {
			t.Fatal("no pacer runs")
		}
		start(t, nil, "ask the pacer").begin(t)
		start(t, nil, append([]string{"kill"}, pids...)...).begin(t)
		works(t, "clear", "cgroup:"+path)
	})
	t.Run("a directory in /tmp", func(t *testing.T) {
		squatted := fmt.Sprintf("/tmp/weir-%d", other)
		if err := os.Chmod("/tmp", 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		start(t, nil, "squat", squatted).begin(t)
		t.Cleanup(func() { _ = os.RemoveAll(squatted) })
		theirs := t.TempDir()
		for dir := theirs; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chown(theirs, other, other); err != nil {
			t.Fatal(err)
		}
		if !e.Cgroups.IOInV2 { // on v1 nobody but root sets limits
			said, status := asOther(t, theirs, nil, "show", "--for", "0")
			if status != 0 {
				t.Errorf("status %d: %s", status, said)
			}
			return
		}
		delegated, _ := made(t, e.Cgroups, "delegated")
		t.Cleanup(func() { emptied(t, delegated) })
		delegate(t, delegated, other)
		inside := filepath.Join(delegated, "inside")
		delegate(t, inside, other)
		in, err := os.Open(inside)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		said, status := asOther(t, theirs, in, "run", "--write", "9MB/s", "--on", disk.Dir, "--", "true")
		if status != 0 {
			t.Errorf("status %d: %s", status, said)
		}
		if entries, err := os.ReadDir(squatted); err != nil || len(entries) > 0 {
			t.Errorf("in the other's directory: %v, %v", entries, err)
		}
	})
}

// asOther runs weir as another user, in a group of cgroup v2 if one is given.
func asOther(t *testing.T, home string, group *os.File, args ...string) (said string, status int) {
	t.Helper()
	return run(t, func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
		if group != nil {
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(group.Fd())
		}
		cmd.Env = append(os.Environ(), "HOME="+home, "XDG_RUNTIME_DIR=")
	}, args...)
}

// pacers are the processes of weir's pacer and its guards.
func pacers(t *testing.T) (pids []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		words, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(words), "weir\x00__") {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}
