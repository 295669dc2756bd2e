package full

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

func TestLibvirtAnswers(t *testing.T) {
	lab.Need(t, lab.Libvirt, lab.Systemd)
	startLibvirt(t)
	if got := run(t, "virsh", "-q", "-c", "lxc:///", "list", "--all"); got != "" {
		t.Errorf("domains on a new system: %q", got)
	}
}

func startLibvirt(t *testing.T) {
	t.Helper()
	start(t, "libvirtd")
	t.Cleanup(func() { run(t, "systemctl", "stop", "libvirtd.socket", "libvirtd-ro.socket", "libvirtd-admin.socket") })
}

// ioGroup is the group that limits a process's disk I/O.
func ioGroup(t *testing.T, pid string) string {
	t.Helper()
	data, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	unified := ""
	for line := range strings.Lines(string(data)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if slices.Contains(strings.Split(fields[1], ","), "blkio") {
			return fields[2]
		}
		if fields[1] == "" {
			unified = fields[2]
		}
	}
	return unified
}
