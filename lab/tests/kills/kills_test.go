package kills_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// kills is what says how often a verb is killed: a whole run of the lab does it a few
// times, make kills 100 times.
const kills = "WEIR_KILLS"

// groups lists what weir show finds on the host, by cgroup: groups of one rule.
func groups(t *testing.T) map[string]limit.Limit {
	t.Helper()
	found := map[string]limit.Limit{}
	for name, limits := range rules(t) {
		if len(limits) != 1 {
			t.Fatalf("group %s has %d rules, want 1", name, len(limits))
		}
		found[name] = limits[0]
	}
	return found
}

// rules lists what weir show finds on the host, by cgroup, the devices in its order.
func rules(t *testing.T) map[string][]limit.Limit {
	t.Helper()
	out, err := exec.Command("weir", "show", "--json", "--for", "0").Output()
	if err != nil {
		t.Fatalf("weir show: %v", err)
	}
	var doc struct {
		Groups []struct {
			Cgroup  string
			Devices []struct{ Limit limit.Limit }
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		t.Fatal(err)
	}
	found := map[string][]limit.Limit{}
	for _, g := range doc.Groups {
		for _, d := range g.Devices {
			found[g.Cgroup] = append(found[g.Cgroup], d.Limit)
		}
	}
	return found
}

// left lists the groups and records of weir runs that are there.
func left(t *testing.T) []string {
	t.Helper()
	names := lab.WeirGroups(t)
	records, _ := os.ReadDir("/run/weir") // not there: no records
	for _, r := range records {
		if strings.HasPrefix(r.Name(), "run.") || strings.HasPrefix(r.Name(), "set.") {
			names = append(names, r.Name())
		}
	}
	return names
}

func TestKillRun(t *testing.T) {
	killRuns(t, lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.FS("ext4"), lab.NoSystemd), 40*time.Millisecond)
}

// A command in a scope has a keeper, and systemd removes the scope.
func TestKillRunInAScope(t *testing.T) {
	killRuns(t, lab.Need(t, lab.Root, lab.Whole, lab.Rates, lab.FS("ext4"), lab.Systemd), 300*time.Millisecond)
}

// killRuns kills runs at random moments: no group is left after the next weir command, and
// no record.
func killRuns(t *testing.T, e environ.Environ, within time.Duration) {
	t.Helper()
	disk := lab.Disk(t, lab.FS("ext4"))
	for i := range lab.Times(t, kills, 6) {
		lab.Killed(t, within, "run", "--quiet", "--write", "1MB/s", "--write-iops", "100", "--on", disk.Dir, "--", "sleep", "0.02")
		// What lives on is the command; when it has ended, the next weir cleans.
		deadline := time.Now().Add(lab.Patience(t, 5*time.Second))
		for {
			groups(t)
			names := append(left(t), scopes(t, e)...)
			if len(names) == 0 {
				break
			}
			if time.Now().After(deadline) {
				for _, name := range names {
					procs, _ := os.ReadFile(filepath.Join(name, "cgroup.procs"))
					status, _ := exec.Command("systemctl", "status", "--full", filepath.Base(name)).CombinedOutput()
					t.Logf("%s: processes %q\n%s", name, procs, status)
				}
				t.Fatalf("kill %d: %v left", i, names)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// scopes lists the scopes of weir that systemd has.
func scopes(t *testing.T, e environ.Environ) (all []string) {
	t.Helper()
	for _, mount := range []string{e.Cgroups.Unified, e.Cgroups.Blkio} {
		found, err := filepath.Glob(filepath.Join(mount, "system.slice", "weir-*.scope"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// Setting four rates on v1 takes four writes. After a kill all of them are in force, or
// none.
func TestKillSet(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.FS("ext4"), lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	group := victim(t, disk)
	set := func(n int) []string {
		return []string{"set", "cgroup:" + group, "--quiet", "--on", disk.Dir,
			"--read", fmt.Sprint(n), "--write", fmt.Sprint(n), "--read-iops", fmt.Sprint(n), "--write-iops", fmt.Sprint(n)}
	}
	if err := exec.Command("weir", set(1000)...).Run(); err != nil {
		t.Fatal(err)
	}
	half, done := 0, 0
	for i := range lab.Times(t, kills, 10) {
		before := groups(t)[group]
		lab.Killed(t, 8*time.Millisecond, set(2000+i)...)
		l := groups(t)[group]
		n, _ := l.RBPS.Number()
		for _, k := range limit.Keys {
			if rate, ok := l.Get(k).Number(); !ok || rate != n {
				half++
			}
		}
		if l != before {
			done++
		}
		if half > 0 {
			t.Fatalf("kill %d left %s, half of one change", i, l)
		}
		if l != before && n != uint64(2000+i) {
			t.Fatalf("kill %d left %s, which nobody asked for", i, l)
		}
	}
	t.Logf("%d of %d sets were done before the kill", done, lab.Times(t, kills, 10))
}

// Two disks take two writes, on v2 too. After a kill both are limited, or neither.
func TestKillSetOnTwoDisks(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.FS("ext4"), lab.NoSystemd)
	one, other := lab.Disk(t, lab.FS("ext4")), lab.Disk(t, lab.FS("ext4"))
	group := victim(t, one)
	set := func(n int) []string {
		return []string{"set", "cgroup:" + group, "--quiet", "--on", one.Dir, "--write", fmt.Sprint(n), "--on", other.Dir, "--write", fmt.Sprint(n)}
	}
	if err := exec.Command("weir", set(1000)...).Run(); err != nil {
		t.Fatal(err)
	}
	for i := range lab.Times(t, kills, 10) {
		lab.Killed(t, 8*time.Millisecond, set(2000+i)...)
		l := rules(t)[group]
		if len(l) != 2 || l[0].WBPS != l[1].WBPS {
			t.Fatalf("kill %d left %s, half of one change", i, l)
		}
	}
}

// victim starts a command under a limit, and returns its group.
func victim(t *testing.T, disk *lab.TestDisk) (group string) {
	t.Helper()
	cmd := exec.Command("weir", "run", "--quiet", "--write", "1MB/s", "--name", "victim", "--on", disk.Dir, "--", "sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	lab.Await(t, 10*time.Second, "the group of weir run", func() bool {
		for name := range groups(t) {
			if strings.HasSuffix(name, "weir-victim") {
				group = name
			}
		}
		return group != ""
	})
	return group
}

func TestKillDemo(t *testing.T) {
	lab.Need(t, lab.Root, lab.OnceV2, lab.Rates, lab.Loop, lab.Command("mkfs.ext4"), lab.FS("ext4"), lab.NoSystemd)
	disk := lab.Disk(t, lab.FS("ext4")) // that it can be unmounted shows that the demo's file is gone
	before := attached(t)
	for i := range lab.Times(t, kills, 1) {
		lab.Killed(t, 4*time.Second, "demo", "--quiet", "--for", "1s", "--dir", disk.Dir)
		deadline := time.Now().Add(lab.Patience(t, 20*time.Second))
		for {
			groups(t)
			names := append(left(t), attached(t)[len(before):]...)
			if mounts, err := os.ReadFile("/proc/self/mounts"); err != nil || strings.Contains(string(mounts), "weir/scratch") {
				names = append(names, "a mount")
			}
			if len(names) == 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("kill %d: %v left", i, names)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// attached lists the loop devices that have a file.
func attached(t *testing.T) []string {
	t.Helper()
	names := []string{}
	entries, err := os.ReadDir("/sys/block")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, err := os.Stat("/sys/block/" + e.Name() + "/loop/backing_file"); err == nil {
			names = append(names, e.Name())
		}
	}
	return names
}
