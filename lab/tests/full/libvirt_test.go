package full

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
)

// domain is an LXC domain without a network.
const domain = `<domain type="lxc">
	<name>weir-lab</name>
	<memory unit="MiB">64</memory>
	<os><type>exe</type><init>/bin/sleep</init><initarg>600</initarg></os>
	<devices>
		<filesystem type="mount"><source dir="%s"/><target dir="/"/></filesystem>
		<console type="pty"/>
	</devices>
</domain>
`

func TestLibvirtAnswers(t *testing.T) {
	lab.Need(t, lab.Libvirt, lab.Systemd)
	startLibvirt(t)
	if got := run(t, "virsh", "-q", "-c", "lxc:///", "list", "--all"); got != "" {
		t.Errorf("domains on a new system: %q", got)
	}
}

// TestLibvirtHoldsADomain starts a container in libvirt's LXC driver, and gives
// it a limit, which the driver writes to the kernel. It makes no domain without
// a memory controller, so on v1 it would take a kernel older than 6.12; there, on
// user-mode Linux 6.1, the domain's controller process dies in its first second.
func TestLibvirtHoldsADomain(t *testing.T) {
	e := lab.Need(t, lab.Libvirt, lab.Systemd, lab.V2, lab.Memory)
	disk := lab.RawDisk(t)
	startLibvirt(t)
	t.Cleanup(func() {
		if log, err := os.ReadFile("/var/log/libvirt/lxc/weir-lab.log"); err == nil && t.Failed() {
			t.Logf("the domain's log:\n%s", log)
		}
	})
	file := filepath.Join(t.TempDir(), "domain.xml")
	if err := os.WriteFile(file, fmt.Appendf(nil, domain, busyboxTree(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	virsh := func(args ...string) string {
		t.Helper()
		return run(t, "virsh", append([]string{"-q", "-c", "lxc:///"}, args...)...)
	}
	virsh("create", file)
	t.Cleanup(func() { virsh("destroy", "weir-lab") })
	if got := virsh("domstate", "weir-lab"); got != "running" {
		t.Errorf("the domain is %s", got)
	}
	virsh("blkiotune", "weir-lab", "--device-write-bytes-sec", disk.Node+",1000000")
	// virsh cannot show the limit again: it reads the weight too, which needs BFQ.
	if rules := domainRules(t, e, virsh("domid", "weir-lab")); !strings.Contains(rules, disk.Number.String()) {
		t.Errorf("the kernel's rules for the domain: %q, none for %v", rules, disk.Number)
	}
}

func startLibvirt(t *testing.T) {
	t.Helper()
	start(t, "libvirtd")
	t.Cleanup(func() { run(t, "systemctl", "stop", "libvirtd.socket", "libvirtd-ro.socket", "libvirtd-admin.socket") })
}

// domainRules reads the write rules of the groups that the domain's controller
// process is in: libvirt writes to one of its own below the scope.
func domainRules(t *testing.T, e environ.Environ, pid string) string {
	t.Helper()
	var all strings.Builder
	for group := unifiedGroup(t, pid); group != "/"; group = filepath.Dir(group) {
		rules, err := os.ReadFile(filepath.Join(e.Cgroups.Unified, group, "io.max"))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(rules)
	}
	return all.String()
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
