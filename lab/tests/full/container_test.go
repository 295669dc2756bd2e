package full

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// A containerTest is what the parts of TestDocker and TestPodman share.
type containerTest struct {
	e       environ.Environ
	disk    *lab.TestDisk
	engine  string // its command, and the kind of its targets
	title   string
	runtime []string // options of the engine's that choose one
}

// container starts one with the disk as a volume and weir in it, that runs a command until
// the end of the test.
func (d containerTest) container(t *testing.T, name string, options []string, command ...string) {
	t.Helper()
	weir, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--detach", "--name", name, "--network", "none", "--volume", d.disk.Dir + ":/data", "--volume", weir + ":/weir:ro"}
	t.Cleanup(func() { d.remove(t, name) })
	run(t, d.engine, slices.Concat(d.runtime, args, options, []string{"busybox"}, command)...)
}

// remove ends a container, and what it wrote: pages that it left dirty would be written
// back in the next one's time, and its files would not be charged to that.
func (d containerTest) remove(t *testing.T, name string) {
	t.Helper()
	args := []string{"rm", "--force", name}
	if d.engine == "podman" { // it waits otherwise
		args = append(args, "--time", "0")
	}
	run(t, d.engine, args...)
	if err := os.Remove(filepath.Join(d.disk.Dir, "f")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	run(t, "sync", "-f", d.disk.Dir)
}

// weir runs weir, and returns what it printed and how it ended.
func weir(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command("weir", args...)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	began := time.Now()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%.1fs weir %s", time.Since(began).Seconds(), strings.Join(args, " "))
	return strings.TrimSpace(out.String()), strings.TrimSpace(messages.String()), cmd.ProcessState.ExitCode()
}

// mustWeir is weir for what must end with 0.
func mustWeir(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, status := weir(t, args...)
	if status != 0 {
		t.Fatalf("weir %s ends with %d\n%s\n%s", strings.Join(args, " "), status, stdout, stderr)
	}
	return stdout, stderr
}

// group is the directory of the group that the kernel has a container's first process in.
func (d containerTest) group(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + run(t, d.engine, "inspect", "--format", "{{.State.Pid}}", name) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if d.e.Cgroups.Blkio != "" && slices.Contains(strings.Split(fields[1], ","), "blkio") {
			return filepath.Join(d.e.Cgroups.Blkio, fields[2])
		}
		if d.e.Cgroups.Blkio == "" && fields[1] == "" {
			return filepath.Join(d.e.Cgroups.Unified, fields[2])
		}
	}
	t.Fatalf("groups of %s: %s", name, text)
	return ""
}

// rule is what the kernel holds for writes of a container to the disk.
func (d containerTest) rule(t *testing.T, name string) string {
	t.Helper()
	file := "io.max"
	if d.e.Cgroups.Blkio != "" {
		file = "blkio.throttle.write_bps_device"
	}
	return ruleIn(t, filepath.Join(d.group(t, name), file), d.disk.Number)
}

// ruleIn is what a file of rules has for a device.
func ruleIn(t *testing.T, file string, dev fmt.Stringer) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if number, rest, _ := strings.Cut(strings.TrimSpace(line), " "); number == dev.String() {
			return rest
		}
	}
	return ""
}

// ruleOf spells a limit on writes as rule reads it.
func (d containerTest) ruleOf(bytesPerSec int) string { return ruleOf(d.e, bytesPerSec) }

func ruleOf(e environ.Environ, bytesPerSec int) string {
	if e.Cgroups.Blkio != "" {
		return fmt.Sprint(bytesPerSec)
	}
	return fmt.Sprintf("rbps=max wbps=%d riops=max wiops=max", bytesPerSec)
}

// free is the rate at which the disk is written to without a limit, from when the kernel
// has begun to write back.
func (d containerTest) free(t *testing.T, window time.Duration) float64 {
	t.Helper()
	_, idle := lab.DeviceBytes(t, d.disk.Number)
	lab.Await(t, 20*time.Second, "writeback", func() bool { _, now := lab.DeviceBytes(t, d.disk.Number); return now > idle+16<<20 })
	began := time.Now()
	_, before := lab.DeviceBytes(t, d.disk.Number)
	time.Sleep(window)
	_, after := lab.DeviceBytes(t, d.disk.Number)
	return float64(after-before) / time.Since(began).Seconds()
}

// written is the rate at which the disk is written to under a limit.
func (d containerTest) written(t *testing.T, window time.Duration) float64 {
	t.Helper()
	arrivals := d.watch(t, "web", d.disk)
	return arrivals.RateOver(t, window)
}

// watch watches what a container that is limited writes to a disk.
func (d containerTest) watch(t *testing.T, name string, disk *lab.TestDisk) *lab.Arrivals {
	t.Helper()
	return watchLimited(t, d.e, d.group(t, name), disk)
}

// idle reports whether the disk has nothing to do right now.
func (d containerTest) idle(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile("/sys/dev/block/" + d.disk.Number.String() + "/inflight")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ") == "0 0"
}

// endless writes a file over and over: a container goes with the end of its writer.
const endless = "while :; do /bin/busybox dd if=/dev/zero of=/data/f bs=65536 count=16000 conv=notrunc 2>/dev/null; done"

// writing is a container's command that writes as fast as it can: on v2 through the page
// cache, on v1 directly, with /weir.
func writing(e environ.Environ) []string {
	if e.Cgroups.Blkio == "" {
		return []string{"/bin/sh", "-c", endless}
	}
	job := load.Job{Path: load.Direct, File: "/data/f", Block: 64 << 10, Size: 64 << 20, For: time.Hour}
	return append([]string{"/weir", "__load"}, job.Args()...)
}

// writer starts a container that writes.
func (d containerTest) writer(t *testing.T, name string) {
	t.Helper()
	d.container(t, name, nil, writing(d.e)...)
}

// A limit on a container that runs is in force within two seconds: on v2 on what
// its dd writes through the page cache, on v1 on direct writes, and weir says that it is
// not on others.
func (d containerTest) held(t *testing.T) {
	rate := lab.Scaled(d.e, 10e6)
	d.writer(t, "web")
	free := func() float64 { return d.free(t, 2*time.Second) }
	lab.Free(t, "before set", 3*float64(rate), free)
	_, said := mustWeir(t, "set", d.engine+":web", "--write", fmt.Sprint(rate), "--hold", "kernel")
	t.Log(said)
	if want := "expected NOT to hold: buffered writes (cgroup v1"; d.e.Cgroups.Blkio != "" && !strings.Contains(said, want) {
		t.Errorf("it said nothing of %q", want)
	}
	if want := "warning: " + d.title + " keeps limits of its own"; !strings.Contains(said, want) {
		t.Errorf("it said nothing of %q", want)
	}
	set := time.Now()
	time.Sleep(2 * time.Second) // what the promise allows
	// What the disk had been given before takes longer where others use the machine.
	lab.Await(t, 20*time.Second, "the end of what was under way", func() bool { return d.idle(t) })
	t.Logf("measured from %.1f s after set", time.Since(set).Seconds())
	lab.Ratio(t, "after set", float64(rate), lab.Written, func() float64 { return d.written(t, 4*time.Second) })
	if got, want := d.rule(t, "web"), d.ruleOf(rate); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
	run(t, "systemctl", "daemon-reload")
	if got, want := d.rule(t, "web"), d.ruleOf(rate); got != want {
		t.Errorf("after a reload of systemd the rule is %q, want %q", got, want)
	}
	mustWeir(t, "clear", d.engine+":web")
	lab.Free(t, "after clear", 2*float64(rate), free)
}

// A finding is what is looked at of one of weir why's.
type finding struct {
	Code  string
	Fixes []struct{ Lines []string }
}

func (d containerTest) why(t *testing.T, args ...string) []finding {
	t.Helper()
	stdout, stderr, status := weir(t, append([]string{"why", "--json"}, args...)...)
	var report struct{ Findings []finding }
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("weir why %s: %v, status %d\n%s\n%s", args, err, status, stdout, stderr)
	}
	return report.Findings
}

func find(all []finding, code string) *finding {
	i := slices.IndexFunc(all, func(f finding) bool { return f.Code == code })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// longOnV1 leaves to a long run on v1 what is Docker's besides, or is proved elsewhere.
func longOnV1(t *testing.T, e environ.Environ) {
	t.Helper()
	if e.Cgroups.Blkio != "" {
		lab.Need(t, lab.Long)
	}
}

// weir prove measures inside the container, and says what weir why foretells.
func (d containerTest) prove(t *testing.T) {
	d.container(t, "idle", nil, "/bin/sleep", "600")
	mustWeir(t, "set", d.engine+":idle", "--quiet", "--write", "10MB/s", "--on", d.disk.Dir)
	var doc struct {
		Target  string
		Rows    []struct{ Path, Direction, Verdict, Why string }
		Verdict string
	}
	lab.Prove(t, &doc, "--paths", "direct,buffered", "--for", "2s", d.engine+":idle")
	t.Logf("%s: %+v", doc.Verdict, doc.Rows)
	buffered := []string{"held", "held at the device"}
	if d.e.Cgroups.Blkio != "" { // by the pacer, which weir set has asked
		buffered = []string{"held"}
	}
	for _, row := range doc.Rows {
		want := []string{"held"}
		if row.Path == "buffered" {
			want = buffered
		}
		if !slices.Contains(want, row.Verdict) {
			t.Errorf("%s %s is %s (%s), want one of %q", row.Path, row.Direction, row.Verdict, row.Why, want)
		}
	}
	if len(doc.Rows) != 2 || doc.Target != d.engine+":idle" {
		t.Errorf("%d rows of %s", len(doc.Rows), doc.Target)
	}
}
