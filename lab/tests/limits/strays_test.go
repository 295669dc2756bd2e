package limits_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// On v1 systemd moves processes out of groups that it did not make, and so out of their
// limits, when the first unit asks for disk I/O accounting. When the last such unit stops,
// it does so again and removes the groups. weir's own scopes ask for accounting, so weir
// makes sure that the processes stay in their groups.
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
	if kept == nil {
		t.Log("another unit asks for accounting all the time")
	} else { // systemd removes one group after the other
		until(t, "the end of the others' group, which weir's slice is for", 5*time.Second, func() bool {
			_, err := os.Stat(group)
			return errors.Is(err, fs.ErrNotExist)
		})
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
	if err := os.WriteFile(filepath.Join(group, "blkio.throttle.write_bps_device"), []byte(disk.Number.String()+" 2000000"), 0); err != nil {
		t.Fatal(err)
	}
	whyMayLift(t, "/lab-strays", disk.Node, true)
	_, said := weirBoth(t, "set", "cgroup:/lab-strays", "--write", "1MB/s", "--on", disk.Dir)
	whyMayLift(t, "/lab-strays", disk.Node, false)
	if want := "When the first unit in lab.slice asks"; !contains(said, want) {
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

// On v2 systemd disables the io controller for groups that it did not make when the last of
// its units that needs the controller stops. Their limits are lost. weir set makes sure that
// they stay.
func TestSystemdLeavesOthersTheirLimits(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.V2, lab.Systemd)
	disk := lab.RawDisk(t)
	anchors := map[string]string{"weir.slice": "weir.slice", "system-weir.slice": "system.slice/system-weir.slice"} // and their groups
	for _, place := range []struct {
		dir, slice string
		keeps      bool // all by itself
	}{{"lab-kept", "lab.slice", false}, {"system.slice/lab-kept", "system.slice", false}, {"lab-kept/inner", "lab.slice", true}} {
		t.Run(place.dir, func(t *testing.T) {
			group := filepath.Join(e.Cgroups.Unified, place.dir)
			file := filepath.Join(group, "io.max")
			if err := os.MkdirAll(group, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				for dir := group; strings.HasSuffix(dir, "lab-kept") || dir == group; dir = filepath.Dir(dir) {
					if err := os.Remove(dir); err != nil {
						t.Error(err)
					}
				}
			})
			// Whoever makes the group gives it the controller, as runc does.
			enable := func() {
				t.Helper()
				for dir := filepath.Dir(group); strings.HasPrefix(dir, e.Cgroups.Unified); dir = filepath.Dir(dir) {
					defer func() {
						if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+io"), 0); err != nil {
							t.Error(err)
						}
					}()
				}
			}
			// A unit that needs the controller comes and goes.
			passing := func() {
				t.Helper()
				system(t, "systemd-run", "--quiet", "--wait", "--slice="+place.slice, "--property=IOWeight=200", "true")
				time.Sleep(time.Second) // for what systemd does after a unit's end
			}
			rule := func() string {
				t.Helper()
				text, err := os.ReadFile(file)
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				return string(text)
			}
			for anchor, dir := range anchors { // of earlier tests
				_ = exec.Command("systemctl", "stop", anchor).Run()
				until(t, "the end of "+dir, 10*time.Second, func() bool { // which systemd removes a moment later
					_, err := os.Stat(filepath.Join(e.Cgroups.Unified, dir))
					return errors.Is(err, fs.ErrNotExist)
				})
			}
			removeEmpty(t, e.Cgroups.Unified)
			others := disk.Number.String() + " rbps=max wbps=2000000 riops=max wiops=max\n"
			until(t, "a rule that stays: systemd may take the controller a moment after those units", 10*time.Second, func() bool {
				enable()
				if err := os.WriteFile(file, []byte(others), 0); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				return rule() == others
			})
			whyMayLift(t, "/"+place.dir, disk.Node, !place.keeps)
			// systemd takes it when no other unit needs it: those of tests beside this one come and go.
			passes := 1
			for passing(); !place.keeps && rule() != "" && passes < 30; passes++ {
				passing()
			}
			if got, want := rule(), map[bool]string{true: others}[place.keeps]; got != want {
				t.Fatalf("without weir the rule became %q after %d units, want %q: systemd does not do any more what weir's slice is for, or another unit needs the io controller:\n%s", got, passes, want, needIO(t, e.Cgroups.Unified))
			}
			enable()
			if _, said := weirBoth(t, "set", "cgroup:/"+place.dir, "--write", "1MB/s", "--on", disk.Node); contains(said, "warning") {
				t.Errorf("weir set said %q", said)
			}
			whyMayLift(t, "/"+place.dir, disk.Node, false)
			passing()
			system(t, "systemctl", "daemon-reload")
			passing()
			if got, want := rule(), disk.Number.String()+" rbps=max wbps=1000000 riops=max wiops=max\n"; got != want {
				t.Errorf("the rule is %q, want %q", got, want)
			}
			there := 0
			for _, dir := range anchors {
				if _, err := os.Stat(filepath.Join(e.Cgroups.Unified, dir)); err == nil {
					there++
				}
			}
			if there != map[bool]int{false: 1}[place.keeps] {
				t.Errorf("weir has %d slices", there)
			}
		})
	}
}

// whyMayLift checks whether weir why finds that systemd may end a group's limits.
func whyMayLift(t *testing.T, group, on string, want bool) {
	t.Helper()
	out, err := exec.Command("weir", "why", "--json", "cgroup:"+group, "--on", on).Output()
	if !contains(string(out), `"schema":"weir.why/`) { // its status is another matter
		t.Fatalf("weir why: %v: %s", err, out)
	}
	if got := contains(string(out), `"systemd-may-lift"`); got != want {
		t.Errorf("weir why finds that systemd may end the limits of %s: %t", group, got)
	}
}

// needIO lists the units that systemd has loaded and gives the io controller, and the
// groups that have given it on, from which nobody can take it.
func needIO(t *testing.T, unified string) string {
	t.Helper()
	out, err := exec.Command("systemctl", "show", "--property=Id,ActiveState,Slice,IOAccounting,IOWeight,StartupIOWeight,IOReadBandwidthMax,IOWriteBandwidthMax,IOReadIOPSMax,IOWriteIOPSMax,DelegateControllers", "*").Output()
	if err != nil {
		t.Error(err)
	}
	var found []string
	for unit := range strings.SplitSeq(string(out), "\n\n") {
		if strings.Contains(unit, "IOAccounting=yes") || strings.Contains(unit, "BandwidthMax=/") || strings.Contains(unit, "IOPSMax=/") || regexp.MustCompile(`(?m)^(Startup)?IOWeight=\d+$|^DelegateControllers=.*\bio\b`).MatchString(unit) {
			found = append(found, strings.ReplaceAll(strings.TrimSpace(unit), "\n", " "))
		}
	}
	for dir, gives := range givers(t, unified) {
		found = append(found, dir+": "+gives)
	}
	return strings.Join(found, "\n")
}

// removeEmpty removes groups beside systemd's at the root that nothing is in, and that have
// given io on: those that runtimes keep for containers to come. From the groups beside one
// that has, systemd cannot take it.
func removeEmpty(t *testing.T, unified string) {
	t.Helper()
	for dir := range givers(t, unified) {
		if name := filepath.Base(dir); strings.HasSuffix(name, ".slice") || strings.HasSuffix(name, ".scope") {
			continue
		}
		events, err := os.ReadFile(filepath.Join(dir, "cgroup.events"))
		if err != nil {
			t.Fatal(err)
		}
		if !contains(string(events), "populated 0") {
			continue
		}
		var below []string
		if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				below = append(below, path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, group := range slices.Backward(below) {
			if err := os.Remove(group); err != nil {
				t.Error(err)
			}
		}
	}
}

// givers are the groups right below the root that give io on, with all that they give.
func givers(t *testing.T, unified string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(unified + "/*/cgroup.subtree_control")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && slices.Contains(strings.Fields(string(text)), "io") {
			found[filepath.Dir(file)] = strings.TrimSpace(string(text))
		}
	}
	return found
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
