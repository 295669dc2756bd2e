package attack_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

func init() {
	attacks["group names"] = func(args []string) error {
		for _, name := range oddNames {
			if strings.Contains(name, "\n") {
				continue // the kernel refuses it
			}
			if err := os.Mkdir(filepath.Join(args[0], name), 0o755); err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
		}
		return nil
	}
	attacks["many groups"] = func(args []string) error {
		for n := range 1500 {
			if err := os.Mkdir(filepath.Join(args[0], fmt.Sprintf("g%d", n)), 0o755); err != nil {
				return err
			}
		}
		return nil
	}
	attacks["deep groups"] = func(args []string) error {
		at := args[0]
		for range lab.More(100, 200) {
			at += "/deepdeepdeep"
			if err := os.Mkdir(at, 0o755); err != nil {
				return err
			}
		}
		return nil
	}
	attacks["groups that come and go"] = func(args []string) error {
		go func() {
			for {
				for n := range 20 {
					_ = os.Mkdir(filepath.Join(args[0], fmt.Sprintf("g%d", n)), 0o755)
				}
				for n := range 20 {
					_ = os.Remove(filepath.Join(args[0], fmt.Sprintf("g%d", n)))
				}
			}
		}()
		return nil
	}
	attacks["processes that come and go"] = func([]string) error {
		go func() {
			for {
				_ = exec.Command("/bin/true").Run()
			}
		}()
		return nil
	}
	attacks["a name"] = func(args []string) error { // of a program
		return unix.Prctl(unix.PR_SET_NAME, uintptr(pointer("\x1b[2J) Z 1\n")), 0, 0, 0)
	}
	attacks["open files"] = func(args []string) error {
		for n := range 900 {
			f, err := os.Create(filepath.Join(args[0], "open\x1b["+strconv.Itoa(n)))
			if err != nil {
				return err
			}
			held = append(held, f)
		}
		return nil
	}
}

// made makes a group in the hierarchy of disk I/O, and returns its directory and its path.
func made(t *testing.T, c environ.Cgroups, name string) (dir, path string) {
	t.Helper()
	dir = filepath.Join(c.Blkio, name)
	if c.IOInV2 {
		dir = filepath.Join(c.Unified, name)
		if err := os.WriteFile(filepath.Join(c.Unified, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
			t.Fatal(err)
		}
	}
	lab.Cgroup(t, dir)
	return dir, "/" + name
}

// delegate makes a group a user's own, as cgroup-v2.rst has it ("Delegation").
func delegate(t *testing.T, dir string, to int) {
	t.Helper()
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	for _, file := range []string{".", "cgroup.procs", "tasks", "cgroup.threads", "cgroup.subtree_control"} {
		if chown := os.Chown(filepath.Join(dir, file), to, to); chown != nil && !errors.Is(chown, os.ErrNotExist) {
			err = errors.Join(err, chown)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func enter(t *testing.T, group string, pid int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
}

// emptied removes the groups below one, once nobody is in them.
func emptied(t *testing.T, dir string) {
	t.Helper()
	var below []string
	var walk func(string)
	walk = func(at string) {
		entries, _ := os.ReadDir(at) // one that is gone has none
		for _, e := range entries {
			if e.IsDir() {
				walk(filepath.Join(at, e.Name()))
				below = append(below, filepath.Join(at, e.Name()))
			}
		}
	}
	lab.Await(t, 30*time.Second, "the groups below "+dir+" to be empty", func() bool {
		below = nil
		walk(dir)
		for _, at := range below {
			if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
				return false
			}
		}
		return true
	})
}

// Whatever a user makes in a delegated group, weir does not wait or fail, and prints nothing
// that a terminal would obey.
func TestGroupsOfAUser(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.Guest, lab.Once, lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	dir := home(t, disk)
	for _, c := range []struct {
		attack string
		args   []string
	}{{"group names", nil}, {"many groups", nil}, {"deep groups", nil}, {"groups that come and go", nil}, {"processes that come and go", nil}, {"a name", nil}, {"open files", []string{dir}}} {
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
			entries, err := os.ReadDir(group)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range entries {
				if at.IsDir() && at.Name() != "inside" && c.attack == "group names" {
					works(t, "set", "cgroup:"+path+"/"+at.Name(), "--write", "8MB/s", "--on", disk.Dir, "--hold", "kernel")
				}
			}
			works(t, "set", "cgroup:"+path, "--write", "9MB/s", "--on", disk.Dir, "--hold", "kernel", "--whole-cgroup")
			works(t, "set", "pid:"+a.pid(), "--write", "7MB/s", "--on", disk.Dir, "--hold", "kernel", "--whole-cgroup")
			if said := works(t, "show", "--for", "0"); !strings.Contains(said, "7.00 MB/s") && !strings.Contains(said, "7 MB/s") {
				t.Errorf("the limit is not shown:\n%.3000s", said)
			}
			works(t, "show", "--for", "0", "--json")
			for _, spec := range []string{"cgroup:" + path, "pid:" + a.pid()} {
				if said, status := weir(t, "why", spec, "--hold", "kernel"); status > 1 || strings.Count(said, "\n") > 200 {
					t.Errorf("why %s: status %d, %d lines\n%.2000s", spec, status, strings.Count(said, "\n"), said)
				}
			}
			works(t, "clear", "cgroup:"+path)
			if rule := ruleOf(t, e.Cgroups, group, disk); rule != "" {
				t.Errorf("after clear: %q", rule)
			}
		})
	}
	t.Run("a group that looks removed", func(t *testing.T) {
		group, _ := made(t, e.Cgroups, "attacked")
		t.Cleanup(func() { emptied(t, group) })
		delegate(t, group, user)
		if e.Cgroups.IOInV2 {
			if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
				t.Fatal(err)
			}
		}
		victim, looks := filepath.Join(group, "x"), filepath.Join(group, "x (deleted)")
		delegate(t, victim, other)
		delegate(t, looks, user)
		a := start(t, nil, "wait")
		enter(t, looks, a.cmd.Process.Pid)
		a.begin(t)
		works(t, "set", "pid:"+a.pid(), "--write", "7MB/s", "--on", disk.Dir, "--hold", "kernel")
		if rule := ruleOf(t, e.Cgroups, victim, disk); rule != "" {
			t.Errorf("another group has it: %q", rule)
		}
		if rule := ruleOf(t, e.Cgroups, looks, disk); !strings.Contains(rule, "7000000") {
			t.Errorf("the process's has %q", rule)
		}
	})
}

// ruleOf is what a group's file says of a disk.
func ruleOf(t *testing.T, c environ.Cgroups, dir string, disk *lab.TestDisk) string {
	t.Helper()
	file := "blkio.throttle.write_bps_device"
	if c.IOInV2 {
		file = "io.max"
	}
	text, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, disk.Number.String()+" ") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
