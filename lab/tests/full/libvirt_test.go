package full

import (
	"os"
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

// unifiedGroup is the group of a process on v2: "0::/machine.slice/…".
func unifiedGroup(t *testing.T, pid string) string {
	t.Helper()
	data, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	group, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "0::")
	if !ok {
		t.Fatalf("groups of process %s: %q", pid, data)
	}
	return group
}
