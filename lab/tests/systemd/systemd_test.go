// Package systemd_test runs weir where systemd is PID 1: weir run in transient
// scopes, and limits of units through D-Bus.
package systemd_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// output runs a program and returns what it printed.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

// rules reads a group's write rule, as the kernel prints it. On v2 one that systemd has taken
// the io controller from, as it may when no limit is left, has none.
func rules(t *testing.T, e environ.Environ, group string) string {
	t.Helper()
	file := filepath.Join(e.Cgroups.Unified, group, "io.max")
	if e.Cgroups.Blkio != "" {
		file = filepath.Join(e.Cgroups.Blkio, group, "blkio.throttle.write_bps_device")
	}
	text, err := os.ReadFile(file)
	if _, there := os.Stat(filepath.Dir(file)); e.Cgroups.Blkio == "" && os.IsNotExist(err) && there == nil {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func writeRule(e environ.Environ, d *lab.TestDisk, bytesPerSec int) string {
	if e.Cgroups.Blkio != "" {
		return fmt.Sprintf("%s %d", d.Number, bytesPerSec)
	}
	return fmt.Sprintf("%s rbps=max wbps=%d riops=max wiops=max", d.Number, bytesPerSec)
}

func state(t *testing.T, unit string) string {
	t.Helper()
	return output(t, "systemctl", "show", "-P", "LoadState", unit)
}

func TestRunIsAScopeThatIsLimitedFromTheStart(t *testing.T) {
	e := lab.Need(t, lab.Systemd)
	disk := lab.RawDisk(t)
	file := "io.max"
	controller := "0:"
	if e.Cgroups.Blkio != "" {
		file, controller = "blkio.throttle.write_bps_device", "blkio"
	}
	mount := e.Cgroups.Unified
	if e.Cgroups.Blkio != "" {
		mount = e.Cgroups.Blkio
	}
	script := fmt.Sprintf(`group=$(sed -n 's/^[0-9]*:[^:]*%s[^/]*//p; s/^%s:*//p' /proc/self/cgroup | head -n 1); echo $group; cat %s$group/%s`, controller, controller, mount, file)
	out := output(t, "weir", "run", "--quiet", "--name", "probe", "--write", "1MB/s", "--on", disk.Node, "--", "sh", "-c", script)
	if !strings.Contains(out, "weir-probe.scope") || !strings.Contains(out, writeRule(e, disk, 1e6)) {
		t.Errorf("the command saw %q, want the scope weir-probe.scope with the rule %q", out, writeRule(e, disk, 1e6))
	}
	lab.Await(t, 10*time.Second, "end of the scope", func() bool { return state(t, "weir-probe.scope") == "not-found" })
}

func TestRunHoldsDirectWrites(t *testing.T) {
	lab.Need(t, lab.Systemd)
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	job := load.Job{Path: load.Direct, File: filepath.Join(disk.Dir, "f"), Block: 32 << 10, Size: 16 << 20, Warm: time.Second, For: 5 * time.Second}
	args := append([]string{"run", "--quiet", "--write", "5MB/s", "--on", disk.Dir, "--", "weir", "__load"}, job.Args()...)
	lab.Ratio(t, "direct write", 5e6, lab.Direct, func() float64 {
		r, err := load.Decode(strings.NewReader(output(t, "weir", args...)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.BytesPerSec()
	})
}

// weir run reads the counters before systemd removes the scope.
func TestRunReportsWhatTheScopeWasCharged(t *testing.T) {
	lab.Need(t, lab.Systemd)
	disk := lab.Disk(t, lab.FS("ext4"))
	out := output(t, "weir", "run", "--quiet", "--json", "--write", "20MB/s", "--on", disk.Dir, "--",
		"dd", "if=/dev/zero", "of="+filepath.Join(disk.Dir, "f"), "bs=64k", "count=32", "oflag=direct", "status=none")
	var doc struct {
		Devices []struct {
			Charged *struct {
				WrittenBytes int `json:"written_bytes"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Devices) != 1 || doc.Devices[0].Charged == nil || doc.Devices[0].Charged.WrittenBytes < 2<<20 {
		t.Errorf("weir run --json: %s, want at least 2 MiB charged", out)
	}
}

// A weir that is killed leaves the command, limited, in its scope, and nothing else.
func TestKilledRunLeavesTheCommandLimited(t *testing.T) {
	e := lab.Need(t, lab.Systemd)
	disk := lab.RawDisk(t)
	cmd := exec.Command("weir", "run", "--quiet", "--name", "orphan", "--write", "1MB/s", "--on", disk.Node, "--", "sleep", "4")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := ""
	lab.Await(t, 20*time.Second, "the command", func() bool {
		group = output(t, "systemctl", "show", "-P", "ControlGroup", "weir-orphan.scope")
		return group != "" && strings.Contains(processes(e, group), "sleep")
	})
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	lab.Await(t, 5*time.Second, "end of the keeper", func() bool { return processes(e, group) == "sleep" })
	if got, want := rules(t, e, group), writeRule(e, disk, 1e6); got != want {
		t.Errorf("after the kill the rule is %q, want %q", got, want)
	}
	lab.Await(t, 15*time.Second, "end of the scope", func() bool { return state(t, "weir-orphan.scope") == "not-found" })
}

// processes names the processes of a group.
func processes(e environ.Environ, group string) string {
	mount := e.Cgroups.Unified
	if e.Cgroups.Blkio != "" {
		mount = e.Cgroups.Blkio
	}
	pids, err := os.ReadFile(filepath.Join(mount, group, "cgroup.procs"))
	if err != nil {
		return ""
	}
	var names []string
	for _, pid := range strings.Fields(string(pids)) {
		if name, err := os.ReadFile("/proc/" + pid + "/comm"); err == nil {
			names = append(names, strings.TrimSpace(string(name)))
		}
	}
	return strings.Join(names, " ")
}

// A limit on a service survives a daemon-reload, and clear removes it.
func TestSetOnAService(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.RawDisk(t)
	output(t, "systemd-run", "--quiet", "--unit=weir-victim", "sleep", "600")
	t.Cleanup(func() { output(t, "systemctl", "stop", "weir-victim.service") })
	const group = "/system.slice/weir-victim.service"
	target := "cgroup:" + group
	output(t, "weir", "set", target, "--quiet", "--write", "5MB/s", "--on", disk.Node)
	for _, after := range []string{"set", "daemon-reload"} {
		if got, want := rules(t, e, group), writeRule(e, disk, 5e6); got != want {
			t.Errorf("after %s the rule is %q, want %q", after, got, want)
		}
		output(t, "systemctl", "daemon-reload")
	}
	output(t, "weir", "set", target, "--quiet", "--read", "7MB/s", "--on", disk.Node)
	if got, want := rules(t, e, group), strings.Replace(writeRule(e, disk, 5e6), "rbps=max", "rbps=7000000", 1); got != want {
		t.Errorf("after setting the read limit the rule is %q, want %q", got, want)
	}
	output(t, "weir", "clear", target, "--quiet")
	if got := rules(t, e, group); got != "" {
		t.Errorf("after clear the rule is %q", got)
	}
	output(t, "systemctl", "daemon-reload")
	if got := rules(t, e, group); got != "" {
		t.Errorf("systemd brought the rule %q back after clear", got)
	}
}

// On v1 weir writes the files itself, and warns that systemd does not know the limit.
func TestSetOnAServiceV1(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V1)
	disk := lab.RawDisk(t)
	output(t, "systemd-run", "--quiet", "--unit=weir-victim1", "-p", "BlockIOAccounting=yes", "sleep", "600")
	t.Cleanup(func() { output(t, "systemctl", "stop", "weir-victim1.service") })
	const group = "/system.slice/weir-victim1.service"
	cmd := exec.Command("weir", "set", "cgroup:"+group, "--write", "5MB/s", "--on", disk.Node)
	messages, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("weir set: %v\n%s", err, messages)
	}
	if want := "a restart of the unit loses it"; !strings.Contains(string(messages), want) {
		t.Errorf("weir set said %q, want %q in it", messages, want)
	}
	if got, want := rules(t, e, group), writeRule(e, disk, 5e6); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
}
