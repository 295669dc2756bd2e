package full

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
)

// TestDocker has weir limit containers of the real Docker. They share one daemon, which
// takes longer to start than all that is asked of it.
func TestDocker(t *testing.T) {
	e := lab.Need(t, lab.Docker, lab.Systemd, lab.FS("ext4"))
	share(t, "containerd")
	start(t, "docker")
	t.Cleanup(func() { run(t, "systemctl", "stop", "docker.socket") })
	if got := run(t, "docker", "info", "--format", "{{.Driver}} {{.CgroupDriver}}"); got != "overlay2 systemd" {
		t.Errorf("storage and cgroup driver: %q", got)
	}
	run(t, "docker", "import", busybox.Tar(t), "busybox")
	d := containerTest{e: e, disk: lab.Disk(t, lab.FS("ext4")), engine: "docker", title: "Docker"}
	t.Run("held", d.held)
	t.Run("record", d.record)
	t.Run("names", d.names)
	if os.Getenv("WEIR_EXECS") != "" { // make engines
		t.Run("manners", d.manners)
	}
	t.Run("disks", func(t *testing.T) {
		longOnV1(t, e)
		t.Run("volume", d.volume)
		t.Run("own disk", d.ownDisk)
		t.Run("prove", d.prove)
	})
	t.Run("persist", d.persist)
	t.Run("half", d.half)
	t.Run("plans", d.plans)
	// These start Docker again, or have it stopped.
	configured(t)
	t.Run("cgroupfs", d.cgroupfs)
	t.Run("quota", d.quota)
	t.Run("down", d.down)
}

// What Docker was told stands beside what is in force, in bytes; where they
// differ weir why says so, and its fix puts Docker's back.
func (d containerTest) record(t *testing.T) {
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
	last := f.Fixes[len(f.Fixes)-1] // the first would have Docker keep what was set
	run(t, "sh", "-ec", strings.Join(last.Lines, "\n"))
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
	if find(after, "record-empty") != nil || find(after, "record-lacks") == nil {
		t.Errorf("after the fix: %+v", after)
	}
	run(t, "docker", "restart", "--time", "0", "bare")
	if got := d.rule(t, "bare"); got != "" {
		t.Errorf("after a restart the rule is %q", got)
	}
}

// limitedContainer starts one that Docker was given a write limit for by its API: its
// command line may drop it.
func (d containerTest) limitedContainer(t *testing.T, name string, bytesPerSec int) {
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
