package systemd_test

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

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// unitFile makes a service of a file, so that it can be started again, and starts it.
func unitFile(t *testing.T, name, command string, settings ...string) (unit string) {
	t.Helper()
	unit = name + ".service"
	path := "/etc/systemd/system/" + unit
	text := "[Service]\nExecStart=" + command + "\n" + strings.Join(settings, "\n") + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("systemctl", "stop", unit).Run() // it may not run
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		output(t, "systemctl", "daemon-reload")
	})
	output(t, "systemctl", "daemon-reload")
	output(t, "systemctl", "start", unit)
	return unit
}

// writer makes a service that writes to a disk, directly, as fast as it can.
func writer(t *testing.T, name string, disk *lab.TestDisk, settings ...string) (unit string) {
	t.Helper()
	weir, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	job := load.Job{Path: load.Direct, File: filepath.Join(disk.Dir, "f"), Block: 64 << 10, Size: 64 << 20, For: time.Hour}
	return unitFile(t, name, strings.Join(append([]string{weir, "__load"}, job.Args()...), " "), settings...)
}

// written measures what reaches a disk, per second.
func written(t *testing.T, disk *lab.TestDisk, over time.Duration) float64 {
	t.Helper()
	began := time.Now()
	_, before := lab.DeviceBytes(t, disk.Number)
	time.Sleep(over)
	_, after := lab.DeviceBytes(t, disk.Number)
	return float64(after-before) / time.Since(began).Seconds()
}

// refused runs weir, which must end with a code and one line, and returns that.
func refused(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := exec.Command("weir", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code || len(out) != 0 || strings.Count(stderr.String(), "\n") != 1 {
		t.Errorf("weir %q: %v, printed %q and %q; want exit code %d and one line", args, err, out, &stderr, code)
	}
	return stderr.String()
}

// A limit on a unit by its name is held at the disk, also after systemd has
// reloaded and restarted it, and clear ends it.
func TestUnitIsHeld(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2, lab.Rates)
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	rate := lab.Scaled(e, 8e6)
	unit := writer(t, "weir-writer", disk)
	group := "/system.slice/" + unit
	output(t, "weir", "set", "unit:weir-writer", "--quiet", "--write", fmt.Sprint(rate), "--on", disk.Dir)
	for _, after := range []string{"set", "daemon-reload", "restart"} {
		switch after {
		case "daemon-reload":
			output(t, "systemctl", "daemon-reload")
		case "restart":
			output(t, "systemctl", "restart", unit)
		}
		if got, want := rules(t, e, group), writeRule(e, disk, rate); got != want {
			t.Errorf("after %s the rule is %q, want %q", after, got, want)
		}
		if after == "daemon-reload" { // the rule is there; what holds it is measured after both
			continue
		}
		lab.Ratio(t, "after "+after, float64(rate), lab.Direct, func() float64 { return written(t, disk, 4*time.Second) })
	}
	// It lists nothing where systemd does not answer within 2 s, as in a reload that another test asks for.
	lab.Await(t, 20*time.Second, "completion of unit:weir-wr", func() bool {
		return strings.HasPrefix(output(t, "weir", "__complete", "set", "unit:weir-wr"), "unit:"+unit+"\n")
	})
	if got := output(t, "weir", "show", "--for", "0"); !strings.Contains(got, "unit:"+unit+"  cgroup v2, owner systemd") {
		t.Errorf("weir show: %q, want unit:%s", got, unit)
	}
	if got := output(t, "weir", "why", "unit:"+unit); !strings.HasPrefix(got, "unit:"+unit+" → cgroup "+group) {
		t.Errorf("weir why: %q", got)
	}
	var proof struct{ Verdict string }
	if code := lab.Prove(t, &proof, "unit:"+unit, "--observe", "3s"); !strings.HasPrefix(proof.Verdict, "held") || code != 0 {
		t.Errorf("weir prove: %s, %d; want it held", proof.Verdict, code)
	}
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	noRule(t, e, group, "clear")
	lab.Free(t, "after clear", 2*float64(rate), func() float64 { return written(t, disk, time.Second) })
}

// A limit on a slice, named by its full name, holds the units below it.
func TestSliceIsSet(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.RawDisk(t)
	output(t, "systemd-run", "--quiet", "--unit=weir-sliced", "--slice=weirtest.slice", "sleep", "600")
	t.Cleanup(func() { output(t, "systemctl", "stop", "weir-sliced.service", "weirtest.slice") })
	output(t, "weir", "set", "unit:weirtest.slice", "--quiet", "--write", "3MB/s", "--on", disk.Node)
	if got, want := rules(t, e, "/weirtest.slice"), writeRule(e, disk, 3e6); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
	if got := output(t, "weir", "show", "--for", "0", "unit:weirtest.slice"); !strings.Contains(got, "1 process") {
		t.Errorf("weir show: %q", got)
	}
	if got := output(t, "weir", "clear", "unit:weirtest.slice", "--quiet", "--json"); !strings.Contains(got, `"wbps":"max"`) {
		t.Errorf("weir clear --json: %s", got)
	}
}

// weir refuses units that cannot have a limit, and names that no unit has.
func TestUnitsThatAreRefused(t *testing.T) {
	lab.Need(t, lab.Systemd)
	disk := lab.RawDisk(t)
	unitFile(t, "weir-idle", "/bin/sleep 600")
	output(t, "systemctl", "stop", "weir-idle.service")
	const masked = "/etc/systemd/system/weir-masked.service"
	if err := os.Symlink("/dev/null", masked); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(masked) })
	for name, want := range map[string]string{
		"weir-none":   "weir: unit:weir-none.service: systemd knows no such unit; systemctl list-units shows all that it knows\n",
		"weir-idle":   "weir: unit:weir-idle.service: it is not running (inactive), so it has no cgroup to limit; systemctl start weir-idle.service\n",
		"weir-masked": "weir: unit:weir-masked.service: it is masked, and cannot run; systemctl unmask weir-masked.service\n",
	} {
		if got := refused(t, 1, "set", "unit:"+name, "--write", "1MB/s", "--on", disk.Node); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"", "../x", "/etc/passwd", "a b", "a\nb", "größe", strings.Repeat("x", 300), "web@", "x.timer"} {
		if got := refused(t, 2, "set", "unit:"+name, "--write", "1MB/s", "--on", disk.Node); len(got) > 250 {
			t.Errorf("%q: %q", name, got)
		}
	}
	// A bare name that fits twice changes nothing. (A process and a service can share one.)
	out := fmt.Sprint(os.Getpid())
	unitFile(t, out, "/bin/sleep 600")
	if got, want := refused(t, 1, "set", out, "--write", "1MB/s", "--on", disk.Node), "write one of pid:"+out+", unit:"+out+".service"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q in it", got, want)
	}
}

// noRule checks that a group has no rule. Where no unit of a slice has a limit, systemd
// takes the io controller away from all of them, and there is no file.
func noRule(t *testing.T, e environ.Environ, group, after string) {
	t.Helper()
	if got := rulesOrNone(t, filepath.Join(e.Cgroups.Unified, group, "io.max")); got != "" {
		t.Errorf("after %s the rule is %q", after, got)
	}
}

// controlled lists the drop-ins that systemd keeps for a unit, for good and until the
// next boot.
func controlled(t *testing.T, unit string) (persistent, runtime []string) {
	t.Helper()
	list := func(dir string) []string {
		files, err := filepath.Glob(filepath.Join(dir, unit+".d", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	return list("/etc/systemd/system.control"), list("/run/systemd/system.control")
}

// forget has systemd give up all that it knows only until the next boot, as a boot does.
func forget(t *testing.T, unit string) {
	t.Helper()
	if err := os.RemoveAll("/run/systemd/system.control/" + unit + ".d"); err != nil {
		t.Fatal(err)
	}
	output(t, "systemctl", "stop", unit)
	output(t, "systemctl", "daemon-reload")
	output(t, "systemctl", "start", unit)
}

// With --persist systemd keeps a limit in a drop-in of its own. clear leaves nothing, also
// of an earlier limit that was to last until the next boot.
func TestPersistentUnit(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.RawDisk(t)
	unit := unitFile(t, "weir-kept", "/bin/sleep 600")
	group := "/system.slice/" + unit
	output(t, "weir", "set", "unit:"+unit, "--quiet", "--write", "9MB/s", "--on", disk.Node)
	output(t, "weir", "set", "unit:"+unit, "--quiet", "--write", "4MB/s", "--on", disk.Node, "--persist")
	forget(t, unit)
	if got, want := rules(t, e, group), writeRule(e, disk, 4e6); got != want {
		t.Errorf("after a boot the rule is %q, want %q", got, want)
	}
	persistent, _ := controlled(t, unit)
	if len(persistent) != 1 || filepath.Base(persistent[0]) != "50-IOWriteBandwidthMax.conf" {
		t.Errorf("systemd keeps %q", persistent)
	}
	messages, err := exec.Command("weir", "set", "unit:"+unit, "--write", "8MB/s", "--on", disk.Node).CombinedOutput()
	if err != nil || !strings.Contains(string(messages), "brings back the limit in "+persistent[0]+"; add --persist") {
		t.Errorf("weir set over a limit that is kept: %v, %s", err, messages)
	}
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	if persistent, runtime := controlled(t, unit); len(persistent)+len(runtime) != 0 {
		t.Errorf("after clear there are %q and %q", persistent, runtime)
	}
	for _, after := range []string{"clear", "daemon-reload", "restart"} {
		noRule(t, e, group, after)
		if after == "clear" {
			output(t, "systemctl", "daemon-reload")
		} else {
			output(t, "systemctl", "restart", unit)
		}
	}
	// Without a limit in the slice there is no io.max; that is no error.
	if got := output(t, "weir", "show", "--for", "0", "unit:"+unit); !strings.Contains(got, "no limit") {
		t.Errorf("weir show of a unit without a limit: %q", got)
	}
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	// What is kept and does not bind now is lifted too.
	output(t, "weir", "set", "unit:"+unit, "--quiet", "--write", "4MB/s", "--on", disk.Node, "--persist")
	output(t, "weir", "set", "unit:"+unit, "--quiet", "--write", "max", "--on", disk.Node)
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	if persistent, _ := controlled(t, unit); len(persistent) != 0 {
		t.Errorf("after max and clear there are %q", persistent)
	}
	// What is kept for a unit that does not run is lifted too.
	output(t, "weir", "set", "unit:"+unit, "--quiet", "--write", "4MB/s", "--on", disk.Node, "--persist")
	output(t, "systemctl", "stop", unit)
	persistent, runtime := controlled(t, unit)
	if got, want := output(t, "weir", "clear", "unit:"+unit, "--dry-run"), "remove "+strings.Join(append(persistent, runtime...), "\nremove "); len(persistent) != 1 || got != want {
		t.Errorf("a dry run of clear has %q, want %q", got, want)
	}
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	if persistent, runtime := controlled(t, unit); len(persistent)+len(runtime) != 0 {
		t.Errorf("after clear of the stopped unit there are %q and %q", persistent, runtime)
	}
	refused(t, 1, "clear", "unit:"+unit)
	output(t, "systemctl", "start", unit)
	noRule(t, e, group, "another start")
	if got := property(t, unit, "NeedDaemonReload"); got != "no" {
		t.Errorf("NeedDaemonReload of %s is %q", unit, got)
	}
}

// clear lifts a limit of the unit's own file until the next boot, and leaves nothing that
// lasts longer.
func TestClearOfAUnitWithALimitOfItsOwn(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.RawDisk(t)
	unit := unitFile(t, "weir-ownlimit", "/bin/sleep 600", "IOWriteBandwidthMax="+disk.Node+" 6000000")
	group := "/system.slice/" + unit
	output(t, "weir", "set", "unit:"+unit, "--quiet", "--write", "4MB/s", "--on", disk.Node, "--persist")
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	output(t, "systemctl", "daemon-reload")
	noRule(t, e, group, "clear")
	if persistent, _ := controlled(t, unit); len(persistent) != 0 {
		t.Errorf("after clear systemd keeps %q", persistent)
	}
	forget(t, unit)
	if got, want := rules(t, e, group), writeRule(e, disk, 6e6); got != want {
		t.Errorf("after a boot the rule is %q, want the unit's own, %q", got, want)
	}
}

// --persist is refused for a process, a group, a scope, and a service that a program made:
// nothing keeps their limits.
func TestPersistIsRefused(t *testing.T) {
	lab.Need(t, lab.Systemd, lab.V2)
	disk := lab.RawDisk(t)
	unit, group := service(t, "weir-transient")
	for target, code := range map[string]int{"pid:1": 2, "cgroup:" + group: 2, "unit:init.scope": 2, "unit:" + unit: 3} {
		if got := refused(t, code, "set", target, "--whole-cgroup", "--write", "1MB/s", "--on", disk.Node, "--persist"); !strings.Contains(got, "--persist: ") {
			t.Errorf("%s: %q", target, got)
		}
	}
	if persistent, runtime := controlled(t, unit); len(persistent)+len(runtime) != 0 {
		t.Errorf("there are %q and %q", persistent, runtime)
	}
}

// On v1 systemd gives a unit a group only because its neighbour needs one, and takes the
// group away with the neighbour. The limit must stay.
func TestUnitOnV1WithAGroupForAnothersSake(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V1)
	disk := lab.RawDisk(t)
	unit := unitFile(t, "weir-beside", "/bin/sleep 600")
	group := "/system.slice/" + unit
	output(t, "systemd-run", "--quiet", "--unit=weir-sibling", "-p", "BlockIOAccounting=yes", "sleep", "600")
	_, there := os.Stat(filepath.Join(e.Cgroups.Blkio, group))
	output(t, "weir", "set", "unit:"+unit, "--quiet", "--write", "3MB/s", "--on", disk.Node)
	output(t, "systemctl", "stop", "weir-sibling.service")
	other := unitFile(t, "weir-passing", "/bin/sleep 600")
	output(t, "systemctl", "stop", other)
	if got, want := rules(t, e, group), writeRule(e, disk, 3e6); got != want {
		t.Errorf("after its sibling has ended the rule is %q, want %q (the group was there before: %t)", got, want, there == nil)
	}
}

// On v1 a unit gets a group of its own, weir writes its files, and a restart loses them;
// with --persist a drop-in sets the limit again.
func TestUnitOnV1(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V1, lab.Rates)
	disk := lab.Disk(t, lab.FS("ext4"))
	rate := lab.Scaled(e, 8e6)
	unit := writer(t, "weir-writer1", disk)
	group := "/system.slice/" + unit
	_, before := os.Stat(filepath.Join(e.Cgroups.Blkio, group)) // systemd makes one beside another's
	refused(t, 1, "set", "unit:"+unit, "--write", "1MB/s", "--on", "/nowhere")
	if _, err := os.Stat(filepath.Join(e.Cgroups.Blkio, group)); err == nil && before != nil {
		t.Errorf("a set that was refused made %s", group)
	}
	set := func(args ...string) string {
		messages, err := exec.Command("weir", append([]string{"set", "unit:" + unit, "--write", fmt.Sprint(rate), "--on", disk.Dir}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("weir set: %v\n%s", err, messages)
		}
		return string(messages)
	}
	if got, want := set(), "a restart of the unit loses it; add --persist"; !strings.Contains(got, want) {
		t.Errorf("weir set: %s, want %q in it", got, want)
	}
	pid, err := strconv.Atoi(property(t, unit, "MainPID"))
	if err != nil {
		t.Fatal(err)
	}
	lab.Ratio(t, "direct writes", float64(rate), lab.Direct, func() float64 {
		defer lab.WatchWriter(t, pid, func() int64 { _, n := lab.DeviceBytes(t, disk.Number); return n })()
		return written(t, disk, 4*time.Second)
	})
	output(t, "systemctl", "daemon-reload")
	if got, want := rules(t, e, group), writeRule(e, disk, rate); got != want {
		t.Errorf("after daemon-reload the rule is %q, want %q", got, want)
	}
	dropIn := "/etc/systemd/system/" + unit + ".d/50-weir.conf"
	if got := set("--persist"); !strings.Contains(got, dropIn+" runs weir at each start of "+unit) {
		t.Errorf("weir set --persist: %s", got)
	}
	output(t, "systemctl", "restart", unit)
	await(t, e, group, writeRule(e, disk, rate))
	lab.Ratio(t, "direct writes after a restart", float64(rate), lab.Direct, func() float64 { return written(t, disk, 4*time.Second) })
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	if _, err := os.Stat(filepath.Dir(dropIn)); err == nil {
		t.Errorf("after clear %s is there", filepath.Dir(dropIn))
	}
	output(t, "systemctl", "restart", unit)
	if got := rulesOrNone(t, filepath.Join(e.Cgroups.Blkio, group, "blkio.throttle.write_bps_device")); got != "" {
		t.Errorf("after clear and a restart the rule is %q", got)
	}
	set("--persist")
	output(t, "systemctl", "stop", unit)
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	if _, err := os.Stat(filepath.Dir(dropIn)); err == nil {
		t.Errorf("after clear of the stopped unit %s is there", filepath.Dir(dropIn))
	}
	if got := refused(t, 3, "set", "unit:system.slice", "--write", "1MB/s", "--on", disk.Node, "--persist"); !strings.Contains(got, "only at the start of a service") {
		t.Errorf("--persist of a slice: %q", got)
	}
}

// await waits until a group has a rule.
func await(t *testing.T, e environ.Environ, group, rule string) {
	t.Helper()
	lab.Await(t, 20*time.Second, "the rule "+rule, func() bool { return rules(t, e, group) == rule })
}
