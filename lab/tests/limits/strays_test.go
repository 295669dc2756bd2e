package limits_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// On v1 systemd moves processes out of groups that it has not made, and so out of their
// limits, when the first unit asks for disk I/O accounting; when the last that did ends it
// does so again, and removes the groups. weir, whose scopes ask for it, sees to it that
// they stay.
func TestSystemdLeavesOthersWhereTheyAre(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V1, lab.Systemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	group, named := filepath.Join(e.Cgroups.Blkio, "lab-strays"), "/sys/fs/cgroup/systemd/lab-strays"
	make := func(dir string) {
		t.Helper()
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, dir := range []string{group, named} {
			until(t, "remove "+dir, 10*time.Second, func() bool {
				err := os.Remove(dir)
				return err == nil || errors.Is(err, fs.ErrNotExist)
			})
		}
	})
	make(group)
	make(named)
	// One as a container engine puts it, and one as cgexec does, from a unit.
	join := "echo $$ > " + group + "/cgroup.procs; "
	both := []int{background(t, join+"echo $$ > "+named+"/cgroup.procs; exec sleep 600"), background(t, join+"exec sleep 600")}
	put := func() {
		t.Helper()
		make(group)
		for _, pid := range both {
			if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	until(t, "two processes", 10*time.Second, func() bool { return len(members(t, group)) == 2 })
	if _, err := os.Stat(filepath.Join(e.Cgroups.Blkio, "system.slice/system-weir.slice")); err == nil { // of earlier tests
		system(t, "systemctl", "stop", "system-weir.slice")
		time.Sleep(time.Second)
		put()
	}
	system(t, "systemd-run", "--quiet", "--wait", "--property=BlockIOAccounting=yes", "true")
	_, kept := os.Stat(filepath.Join(e.Cgroups.Blkio, "system.slice"))
	for i := 0; kept == nil && i < 20; i++ {
		time.Sleep(100 * time.Millisecond)
		_, kept = os.Stat(filepath.Join(e.Cgroups.Blkio, "system.slice"))
	}
	if _, err := os.Stat(group); kept == nil {
		t.Log("another unit asks for accounting all the time")
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after systemd-run the group of others is still there (%v): systemd does not do any more what weir's slice is for", err)
	}
	put()

	// One whose slice has no anchor is not safe, and weir set says so.
	system(t, "systemd-run", "--quiet", "--unit=lab-other", "--slice=lab.slice", "sleep", "600")
	pid, err := exec.Command("systemctl", "show", "--property=MainPID", "--value", "lab-other.service").Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), pid, 0); err != nil {
		t.Fatal(err)
	}
	_, said := weirBoth(t, "set", "cgroup:/lab-strays", "--write", "1MB/s", "--on", disk.Dir)
	if want := "when the first unit in lab.slice asks"; !contains(said, want) {
		t.Errorf("weir set said %q, want %q in it", said, want)
	}
	system(t, "systemctl", "stop", "lab-other.service")
	if left := missing(t, group, both); len(left) > 0 {
		t.Errorf("after weir set processes %v are in another group", left)
	}
	system(t, "systemctl", "stop", "system-weir.slice") // for weir run, which does it too
	time.Sleep(time.Second)
	put()

	forks := background(t, join+"for i in $(seq 150); do sleep 600 & sleep 0.004; done; wait")
	until(t, "children", 10*time.Second, func() bool { return len(members(t, group)) > 20 })
	system(t, "weir", "run", "--quiet", "--write", "1MB/s", "--on", disk.Dir, "--", "true")
	until(t, "150 children", time.Minute, func() bool { return len(childrenOf(t, forks)) >= 150 })
	all := append(childrenOf(t, forks), both...)
	if left := missing(t, group, all); len(left) > 0 {
		t.Errorf("after weir run %d of %d processes are in another group: %v", len(left), len(all), left)
	}
	for _, then := range [][]string{
		{"systemd-run", "--quiet", "--wait", "--property=BlockIOAccounting=yes", "true"},
		{"weir", "run", "--quiet", "--write", "1MB/s", "--on", disk.Dir, "--", "true"},
		{"systemctl", "daemon-reload"},
	} {
		system(t, then...)
	}
	time.Sleep(time.Second) // for what systemd does after a unit's end
	if left := missing(t, group, all); len(left) > 0 {
		t.Errorf("in the end %d of %d processes are in another group: %v", len(left), len(all), left)
	}
}

// background runs a shell script until the end of the test, with all that it starts.
func background(t *testing.T, script string) (pid int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, child := range childrenOf(t, cmd.Process.Pid) {
			if p, err := os.FindProcess(child); err == nil {
				_ = p.Kill()
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func system(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
}

func members(t *testing.T, group string) []int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		t.Fatal(err)
	}
	return numbers(text)
}

// missing lists those that are there, and not in a group.
func missing(t *testing.T, group string, pids []int) []int {
	t.Helper()
	there := members(t, group)
	return slices.DeleteFunc(slices.Clone(pids), func(pid int) bool {
		_, err := os.Stat(fmt.Sprint("/proc/", pid))
		return err != nil || slices.Contains(there, pid)
	})
}

// childrenOf lists the sleeping children of a process.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	return numbers(text)
}

func numbers(text []byte) []int {
	var all []int
	for _, field := range strings.Fields(string(text)) {
		if n, err := strconv.Atoi(field); err == nil {
			all = append(all, n)
		}
	}
	return all
}
