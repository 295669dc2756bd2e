package full

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// TestDocker has weir limit containers of the real Docker. They share one daemon, which
// takes longer to start than all that is asked of it.
func TestDocker(t *testing.T) {
	e := lab.Need(t, lab.Docker, lab.Systemd, lab.FS("ext4"))
	start(t, "docker")
	t.Cleanup(func() { run(t, "systemctl", "stop", "docker.socket", "containerd") })
	run(t, "docker", "import", busyboxTar(t), "busybox")
	d := dockerTest{e: e, disk: lab.Disk(t, lab.FS("ext4"))}
	t.Run("held", d.held)
	t.Run("record", d.record)
	t.Run("prove", d.prove)
	t.Run("names", d.names)
	t.Run("cgroupfs", d.cgroupfs)
	t.Run("down", d.down)
}

// A dockerTest is what the parts of TestDocker share.
type dockerTest struct {
	e    environ.Environ
	disk *lab.TestDisk
}

// container starts one with the disk as a volume and weir in it, that runs a command until
// the end of the test.
func (d dockerTest) container(t *testing.T, name string, options []string, command ...string) {
	t.Helper()
	weir, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--detach", "--name", name, "--network", "none", "--volume", d.disk.Dir + ":/data", "--volume", weir + ":/weir:ro"}
	t.Cleanup(func() { d.remove(t, name) })
	run(t, "docker", slices.Concat(args, options, []string{"busybox"}, command)...)
}

// remove ends a container, and what it wrote: pages that it left dirty would be written
// back in the next one's time, and its files would not be charged to that.
func (d dockerTest) remove(t *testing.T, name string) {
	t.Helper()
	run(t, "docker", "rm", "--force", name)
	if err := os.Remove(filepath.Join(d.disk.Dir, "f")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	run(t, "sync")
}

// weir runs weir, and returns what it printed and how it ended.
func weir(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := exec.Command("weir", args...)
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
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
func (d dockerTest) group(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + run(t, "docker", "inspect", "--format", "{{.State.Pid}}", name) + "/cgroup")
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
func (d dockerTest) rule(t *testing.T, name string) string {
	t.Helper()
	file := "io.max"
	if d.e.Cgroups.Blkio != "" {
		file = "blkio.throttle.write_bps_device"
	}
	text, err := os.ReadFile(filepath.Join(d.group(t, name), file))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if number, rest, _ := strings.Cut(strings.TrimSpace(line), " "); number == d.disk.Number.String() {
			return rest
		}
	}
	return ""
}

// ruleOf spells a limit on writes as rule reads it.
func (d dockerTest) ruleOf(bytesPerSec int) string {
	if d.e.Cgroups.Blkio != "" {
		return fmt.Sprint(bytesPerSec)
	}
	return fmt.Sprintf("rbps=max wbps=%d riops=max wiops=max", bytesPerSec)
}

// free is the rate at which the disk is written to without a limit, from when the kernel
// has begun to write back.
func (d dockerTest) free(t *testing.T, window time.Duration) float64 {
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
func (d dockerTest) written(t *testing.T, window time.Duration) float64 {
	t.Helper()
	counter := lab.Done(t, d.disk.Number)
	if d.e.Cgroups.Blkio == "" {
		counter = lab.Charged(d.group(t, "web"), d.disk.Number)
	}
	arrivals := lab.WatchWrites(counter)
	time.Sleep(window)
	return arrivals.Rate(t)
}

// idle reports whether the disk has nothing to do right now.
func (d dockerTest) idle(t *testing.T) bool {
	t.Helper()
	text, err := os.ReadFile("/sys/dev/block/" + d.disk.Number.String() + "/inflight")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ") == "0 0"
}

// S1, S2: a limit on a container that runs is in force within two seconds: on v2 on what
// its dd writes through the page cache, on v1 on direct writes, and weir says that it is
// not on others.
func (d dockerTest) held(t *testing.T) {
	rate := lab.Scaled(d.e, 10e6)
	if d.e.Cgroups.Blkio == "" {
		// 3.8 GB, which take longer than the test.
		d.container(t, "web", nil, "/bin/busybox", "dd", "if=/dev/zero", "of=/data/f", "bs=65536", "count=57600")
	} else {
		job := load.Job{Path: load.Direct, File: "/data/f", Block: 64 << 10, Size: 64 << 20, For: time.Hour}
		d.container(t, "web", nil, append([]string{"/weir", "__load"}, job.Args()...)...)
	}
	free := d.free(t, 2*time.Second)
	if free < 3*float64(rate) {
		t.Fatalf("the container writes %.0f bytes/s without a limit, too little to tell", free)
	}
	_, said := mustWeir(t, "set", "docker:web", "--write", fmt.Sprint(rate))
	t.Log(said)
	if want := "buffered writes NOT held: cgroup v1"; d.e.Cgroups.Blkio != "" && !strings.Contains(said, want) {
		t.Errorf("it said nothing of %q", want)
	}
	if want := "warning: Docker keeps limits of its own"; !strings.Contains(said, want) {
		t.Errorf("it said nothing of %q", want)
	}
	set := time.Now()
	time.Sleep(2 * time.Second) // what the promise allows
	// What the disk had been given before takes longer where others use the machine.
	lab.Await(t, 20*time.Second, "the end of what was under way", func() bool { return d.idle(t) })
	t.Logf("measured from %.1f s after set", time.Since(set).Seconds())
	lab.Ratio(t, "after set", float64(rate), lab.Written, func() float64 { return d.written(t, 12*time.Second) })
	if got, want := d.rule(t, "web"), d.ruleOf(rate); got != want {
		t.Errorf("the rule is %q, want %q", got, want)
	}
	run(t, "systemctl", "daemon-reload")
	if got, want := d.rule(t, "web"), d.ruleOf(rate); got != want {
		t.Errorf("after a reload of systemd the rule is %q, want %q", got, want)
	}
	mustWeir(t, "clear", "docker:web")
	time.Sleep(2 * time.Second)
	if freed := d.free(t, 2*time.Second); freed < float64(2*rate) {
		t.Errorf("after clear: %.0f bytes/s, want more than twice %d", freed, rate)
	}
}

// A finding is what is looked at of one of weir why's.
type finding struct {
	Code  string
	Fixes []struct{ Lines []string }
}

func (d dockerTest) why(t *testing.T, args ...string) []finding {
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

// S1, S7: what Docker was told stands beside what is in force, in bytes; where they
// differ weir why says so, and its fix puts Docker's back.
func (d dockerTest) record(t *testing.T) {
	d.limitedContainer(t, "kept", 5<<20)
	if got, want := d.rule(t, "kept"), d.ruleOf(5<<20); got != want {
		t.Errorf("Docker's rule is %q, want %q", got, want)
	}
	for _, code := range []string{"record-differs", "record-empty", "unit-differs"} {
		if f := find(d.why(t, "docker:kept"), code); f != nil {
			t.Errorf("found before anything was changed: %+v", f)
		}
	}
	run(t, "systemctl", "daemon-reload")
	if got, want := d.rule(t, "kept"), d.ruleOf(5<<20); got != want {
		t.Errorf("after a reload of systemd Docker's rule is %q, want %q", got, want)
	}
	mustWeir(t, "set", "docker:kept", "--quiet", "--write", "1MB/s", "--on", d.disk.Dir)
	shown, _ := mustWeir(t, "show", "--for", "0", "docker:kept")
	if !strings.Contains(shown, "DOCKER KEEPS") || !strings.Contains(shown, "5 MiB/s") || !strings.Contains(shown, "1 MB/s") {
		t.Errorf("weir show:\n%s", shown)
	}
	f := find(d.why(t, "docker:kept"), "record-differs")
	if f == nil {
		t.Fatal("record-differs is not found")
	}
	run(t, "sh", "-ec", strings.Join(f.Fixes[0].Lines, "\n"))
	if got, want := d.rule(t, "kept"), d.ruleOf(5<<20); got != want {
		t.Errorf("after the fix the rule is %q, want %q", got, want)
	}
	if f := find(d.why(t, "docker:kept"), "record-differs"); f != nil {
		t.Errorf("found after the fix: %+v", f)
	}

	// Docker's command line of 26.1.5 drops such flags, and says nothing.
	d.container(t, "bare", []string{"--device-write-bps", d.disk.Node + ":5mb"}, "/bin/sleep", "600")
	keeps := strings.Contains(run(t, "docker", "inspect", "--format", "{{json .HostConfig.BlkioDeviceWriteBps}}", "bare"), "5242880")
	version := run(t, "docker", "version", "--format", "{{.Client.Version}}")
	t.Logf("docker %s keeps what its command line is given: %t", version, keeps)
	if drops := strings.HasPrefix(version, "26.1.5"); keeps == drops {
		t.Errorf("docker %s keeps what its command line is given: %t", version, keeps)
	}
	if keeps {
		if f := find(d.why(t, "docker:bare"), "record-empty"); f != nil {
			t.Errorf("found, and Docker keeps a limit: %+v", f)
		}
		run(t, "docker", "rm", "--force", "bare")
		d.container(t, "bare", nil, "/bin/sleep", "600")
	}
	f = find(d.why(t, "docker:bare"), "record-empty")
	if f == nil {
		t.Fatal("record-empty is not found")
	}
	run(t, "sh", "-ec", strings.Join(f.Fixes[0].Lines, "\n"))
	after := d.why(t, "docker:bare")
	if find(after, "record-empty") != nil || find(after, "record-differs") == nil {
		t.Errorf("after the fix: %+v", after)
	}
	run(t, "docker", "restart", "--time", "0", "bare")
	if got := d.rule(t, "bare"); got != "" {
		t.Errorf("after a restart the rule is %q", got)
	}
}

// limitedContainer starts one that Docker was given a write limit for by its API: its
// command line may drop it.
func (d dockerTest) limitedContainer(t *testing.T, name string, bytesPerSec int) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"Image": "busybox", "Cmd": []string{"/bin/sleep", "600"}, "HostConfig": map[string]any{
		"NetworkMode": "none", "Binds": []string{d.disk.Dir + ":/data"},
		"BlkioDeviceWriteBps": []map[string]any{{"Path": d.disk.Node, "Rate": bytesPerSec}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", "/var/run/docker.sock")
	}}}
	defer client.CloseIdleConnections()
	answer, err := client.Post("http://docker/containers/create?name="+name, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		text, _ := io.ReadAll(answer.Body)
		t.Fatalf("create %s: %s: %s", name, answer.Status, text)
	}
	t.Cleanup(func() { d.remove(t, name) })
	run(t, "docker", "start", name)
}

// weir prove measures inside the container, and says what weir why foretells.
func (d dockerTest) prove(t *testing.T) {
	d.container(t, "idle", nil, "/bin/sleep", "600")
	mustWeir(t, "set", "docker:idle", "--quiet", "--write", "10MB/s", "--on", d.disk.Dir)
	var doc struct {
		Target  string
		Rows    []struct{ Path, Direction, Verdict, Why string }
		Verdict string
	}
	lab.Prove(t, &doc, "--paths", "direct,buffered", "docker:idle")
	t.Logf("%s: %+v", doc.Verdict, doc.Rows)
	buffered := []string{"held", "held at the device"}
	if d.e.Cgroups.Blkio != "" {
		buffered = []string{"not held"}
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
	if len(doc.Rows) != 2 || doc.Target != "docker:idle" {
		t.Errorf("%d rows of %s", len(doc.Rows), doc.Target)
	}
}
