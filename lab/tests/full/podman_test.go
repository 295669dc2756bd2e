package full

import (
	"os"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
)

// TestPodman has weir do the same with Podman's.
func TestPodman(t *testing.T) {
	e := lab.Need(t, lab.Podman, lab.Systemd, lab.FS("ext4"))
	t.Parallel()
	longOnV1(t, e)
	run(t, "systemctl", "start", "podman.socket")
	t.Cleanup(func() { run(t, "systemctl", "stop", "podman.socket", "podman.service") })
	run(t, "podman", "import", "--quiet", busybox.Tar(t), "busybox")
	t.Cleanup(func() { run(t, "podman", "rmi", "--force", "busybox") })
	d := containerTest{e: e, disk: lab.Disk(t, lab.FS("ext4")), engine: "podman", title: "Podman"}
	if e.Cgroups.Blkio != "" {
		d.runtime = []string{"--runtime", "runc"} // crun refuses hybrid hosts and v1 hosts without cpuset
	}
	t.Run("held", func(t *testing.T) {
		d.writer(t, "web")
		holds(t, e, d.disk, "podman:web", d.group(t, "web"), "warning: Podman keeps limits of its own")
	})
	t.Run("kept", d.kept)
	if os.Getenv("WEIR_EXECS") != "" { // make engines
		t.Run("manners", d.manners)
	}
}

// kept: what the engine's command line was given is what it keeps, and is in force.
func (d containerTest) kept(t *testing.T) {
	d.container(t, "kept", []string{"--device-write-bps", d.disk.Node + ":5mb"}, "/bin/sleep", "600")
	if got, want := d.rule(t, "kept"), d.ruleOf(5<<20); got != want {
		t.Errorf("the rule of %s is %q, want %q", d.title, got, want)
	}
	shown, _ := mustWeir(t, "show", "--for", "0", d.engine+":kept")
	if want := strings.ToUpper(d.title) + " KEEPS"; !strings.Contains(shown, want) || !strings.Contains(shown, "5 MiB/s") {
		t.Errorf("weir show, want %q in it:\n%s", want, shown)
	}
	for _, code := range []string{"record-differs", "record-empty", "unit-differs"} {
		if f := find(d.why(t, d.engine+":kept"), code); f != nil {
			t.Errorf("found: %+v", f)
		}
	}
	mustWeir(t, "set", d.engine+":kept", "--quiet", "--write", "1MB/s", "--on", d.disk.Dir)
	if find(d.why(t, d.engine+":kept"), "record-differs") == nil {
		t.Error("record-differs is not found")
	}
}
