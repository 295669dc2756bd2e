package systemd_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// linear makes a device of the device mapper of 256 MiB of another one, and of nothing else, as a logical volume is.
func linear(t *testing.T, name, below string, atMiB int) *lab.TestDisk {
	t.Helper()
	output(t, "dmsetup", "create", name, "--table", fmt.Sprintf("0 %d linear %s %d", 256<<11, below, atMiB<<11))
	t.Cleanup(func() { output(t, "dmsetup", "remove", "--retry", name) })
	v := &lab.TestDisk{Node: "/dev/mapper/" + name}
	var st unix.Stat_t
	if err := unix.Stat(v.Node, &st); err != nil {
		t.Fatal(err)
	}
	v.Number = blkdev.Number{Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)}
	return v
}

// mounted makes a file system on a volume.
func mounted(t *testing.T, v *lab.TestDisk) {
	t.Helper()
	output(t, "mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", v.Node)
	v.FS, v.Dir = "ext4", t.TempDir()
	if err := unix.Mount(v.Node, v.Dir, v.FS, 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(v.Dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// expectRules compares a group's rules, in any order.
func expectRules(t *testing.T, e environ.Environ, group, after string, want ...string) {
	t.Helper()
	got := strings.Split(rules(t, e, group), "\n")
	slices.Sort(got)
	slices.Sort(want)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("after %s the rules are %q, want %q", after, got, want)
	}
}

// A limit of a logical volume is on the volume, where systemd would limit its disk. It does not touch the disk's
// limit, nor the other way round, and holds. systemd leaves it in force until the unit restarts.
func TestAVolumeIsLimitedAndNotItsDisk(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2, lab.DM, lab.Command("dmsetup"), lab.Command("mkfs.ext4"))
	disk := lab.RawDisk(t)
	one, two := linear(t, "weirpast1", disk.Node, 0), linear(t, "weirpast2", disk.Node, 256)
	mounted(t, one)
	unit := writer(t, "weir-past", &lab.TestDisk{Dir: one.Dir})
	group := "/system.slice/" + unit
	set := func(rate string, on *lab.TestDisk) {
		t.Helper()
		output(t, "weir", "set", "unit:"+unit, "--quiet", "--hold", "kernel", "--write", rate, "--on", on.Node)
	}
	set("5MB/s", one)
	expectRules(t, e, group, "a limit on a volume", writeRule(e, one, 5e6))
	lab.Ratio(t, "direct write of a unit to a volume", 5e6, lab.Band{Low: 0.95, High: 1.05}, func() float64 { return written(t, one, 5*time.Second) })
	set("9MB/s", disk)
	set("6MB/s", two)
	all := func(ofDisk int) []string {
		return []string{writeRule(e, one, 5e6), writeRule(e, two, 6e6), writeRule(e, disk, ofDisk)}
	}
	expectRules(t, e, group, "limits on the disk and on another volume", all(9e6)...)
	set("8MB/s", disk)
	expectRules(t, e, group, "another limit on the disk", all(8e6)...)
	output(t, "systemctl", "daemon-reload")
	expectRules(t, e, group, "daemon-reload", all(8e6)...)
	output(t, "systemctl", "set-property", "--runtime", unit, "CPUWeight=50", "IOWeight=50")
	expectRules(t, e, group, "other properties", all(8e6)...)

	said := refused(t, 3, "set", "unit:"+unit, "--quiet", "--persist", "--write", "4MB/s", "--on", one.Dir)
	if !strings.Contains(said, "systemd cannot limit "+one.Node+" itself") {
		t.Errorf("--persist: %q", said)
	}
	expectRules(t, e, group, "a refusal", all(8e6)...)
	if got := why(t, unit, one); !strings.Contains(got, "cannot limit "+one.Number.String()+" itself") || strings.Contains(got, "nobody keeps") {
		t.Errorf("weir why: %s", got)
	}
	output(t, "weir", "clear", "unit:"+unit, "--quiet", "--on", two.Node)
	expectRules(t, e, group, "clear of a volume", writeRule(e, one, 5e6), writeRule(e, disk, 8e6))
	output(t, "weir", "clear", "unit:"+unit, "--quiet", "--on", disk.Node)
	expectRules(t, e, group, "clear of the disk", writeRule(e, one, 5e6))

	// systemd takes the io controller from a slice with the last unit of it that needs the controller.
	output(t, "systemctl", "revert", unit) // all that it was told of the unit: weir's accounting too
	output(t, "weir", "clear", "unit:"+unit, "--quiet")
	set("5MB/s", one)
	output(t, "systemd-run", "--quiet", "--unit=weir-past-other", "-p", "IOWeight=50", "sleep", "600")
	output(t, "systemctl", "stop", "weir-past-other.service")
	output(t, "systemctl", "daemon-reload")
	service(t, "weir-past-another", "CPUWeight=50")
	expectRules(t, e, group, "the end of another unit with I/O settings", writeRule(e, one, 5e6))
	output(t, "systemctl", "restart", unit)
	if got := rules(t, e, group); got != "" {
		t.Errorf("after a restart the rules are %q, and the guide says that they are lost", got)
	}
	agentOf(t, fmt.Sprintf("plans: {small: {on: [{path: %s, write: 4MB/s}]}}\nassign: [{unit: %s, plan: small}]\n", one.Node, unit))
	again := func(after string) {
		t.Helper()
		lab.Await(t, 20*time.Second, "the plan's limit after "+after, func() bool { return rules(t, e, group) == writeRule(e, one, 4e6) })
	}
	again("weird's start")
	output(t, "systemctl", "restart", unit)
	again("a restart")
}

// What systemd keeps over boots under a volume's name is still kept after the disk got another limit until the next
// boot, whether that name lasts or not.
func TestALimitUnderAVolumesNameStaysKept(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2, lab.DM, lab.Command("dmsetup"))
	disk := lab.RawDisk(t)
	volume := linear(t, "weirkept", disk.Node, 0)
	unit := unitFile(t, "weir-kept", "/bin/sleep 600")
	group := "/system.slice/" + unit
	for _, name := range []string{volume.Node, "/dev/block/" + volume.Number.String()} {
		output(t, "systemctl", "set-property", unit, "IOWriteBandwidthMax="+name+" 5M")
		expectRules(t, e, group, "a limit that systemd keeps on "+name, writeRule(e, disk, 5e6))
		output(t, "weir", "set", "unit:"+unit, "--quiet", "--hold", "kernel", "--read", "3MB/s", "--on", disk.Node)
		expectRules(t, e, group, "another one of the disk", disk.Number.String()+" rbps=3000000 wbps=5000000 riops=max wiops=max")
		forget(t, unit)
		expectRules(t, e, group, "a boot", writeRule(e, disk, 5e6))
		output(t, "weir", "clear", "unit:"+unit, "--quiet")
		forget(t, unit)
		if got := rules(t, e, group); got != "" {
			t.Errorf("%s: after weir clear and a boot the rules are %q", name, got)
		}
	}
}

// agentOf runs weird with plans until the end of the test.
func agentOf(t *testing.T, plans string) {
	t.Helper()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(at("plans.yaml"), []byte(plans), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd := exec.Command("weird", "run", "--plans", at("plans.yaml"), "--socket", at("socket"), "--journal", at("journal"))
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("weird:\n%s", &said)
		}
	})
}

// A command's limits on two volumes of one disk are both in force, and hold.
func TestRunOnVolumes(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2, lab.DM, lab.Command("dmsetup"), lab.Command("mkfs.ext4"))
	disk := lab.RawDisk(t)
	one, two := linear(t, "weirrun1", disk.Node, 0), linear(t, "weirrun2", disk.Node, 256)
	mounted(t, one)
	args := []string{"run", "--quiet", "--hold", "kernel", "--write", "5MB/s", "--on", one.Dir, "--write", "6MB/s", "--on", two.Node, "--"}
	got := strings.Split(output(t, "weir", append(args, "sh", "-c", "cat "+e.Cgroups.Unified+"$(sed -n s/^0:://p /proc/self/cgroup)/io.max")...), "\n")
	want := []string{writeRule(e, one, 5e6), writeRule(e, two, 6e6)}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the command saw %q, want %q", got, want)
	}
	job := load.Job{Path: load.Direct, File: filepath.Join(one.Dir, "f"), Block: 32 << 10, Size: 16 << 20, Warm: time.Second, For: 5 * time.Second}
	lab.Ratio(t, "direct write of a command to a volume", 5e6, lab.Band{Low: 0.95, High: 1.05}, func() float64 {
		r, err := load.Decode(strings.NewReader(output(t, "weir", append(append(args, "weir", "__load"), job.Args()...)...)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.BytesPerSec()
	})
}

// systemd itself limits the disk below a volume. Below a volume on a volume its versions differ: they go one step
// or all.
func TestWhereSystemdGoesPast(t *testing.T) {
	e := lab.Need(t, lab.Systemd, lab.V2, lab.DM, lab.Command("dmsetup"))
	disk := lab.RawDisk(t)
	one := linear(t, "weirway1", disk.Node, 0)
	top := linear(t, "weirway2", one.Node, 0)
	_, group := service(t, "weir-way", "IOWriteBandwidthMax="+one.Node+" 5M")
	if got := rules(t, e, group); got != writeRule(e, disk, 5e6) {
		t.Errorf("systemd limits %q for a volume of %s", got, disk.Number)
	}
	unit, group := service(t, "weir-long-way", "IOWriteBandwidthMax="+top.Node+" 5M")
	ends := []string{writeRule(e, one, 5e6), writeRule(e, disk, 5e6)}
	before := rules(t, e, group)
	if !slices.Contains(ends, before) {
		t.Fatalf("systemd limits %q, want one of %q", before, ends)
	}
	t.Logf("systemd %s: %q for %s on %s on %s", strings.Fields(output(t, "systemctl", "--version"))[1], before, top.Number, one.Number, disk.Number)
	output(t, "weir", "set", "unit:"+unit, "--quiet", "--hold", "kernel", "--write", "3MB/s", "--on", top.Node)
	expectRules(t, e, group, "a limit on the upper volume", before, writeRule(e, top, 3e6))
	output(t, "weir", "set", "unit:"+unit, "--quiet", "--hold", "kernel", "--write", "9MB/s", "--on", disk.Node)
	want := []string{writeRule(e, top, 3e6), writeRule(e, disk, 9e6)}
	if before == ends[0] {
		want = append(want, before) // systemd's limit is on another device than the disk
	}
	expectRules(t, e, group, "a limit on the disk", want...)
	output(t, "systemctl", "daemon-reload")
	expectRules(t, e, group, "daemon-reload", want...)
}
