package full

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
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

// TestLibvirtHoldsADomain starts a container in libvirt's LXC driver, and gives
// it a limit, which the driver writes to the kernel.
func TestLibvirtHoldsADomain(t *testing.T) {
	lab.Need(t, lab.Libvirt, lab.Systemd)
	disk := lab.RawDisk(t)
	// virsh reads the weight with each limit, and there is none without BFQ.
	run(t, "modprobe", "bfq")
	start(t, "libvirtd")
	t.Cleanup(func() { run(t, "systemctl", "stop", "libvirtd.socket", "libvirtd-ro.socket", "libvirtd-admin.socket") })
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
	if got := virsh("blkiotune", "weir-lab"); !strings.Contains(got, disk.Node+",1000000") {
		t.Errorf("its disk limits: %q", got)
	}
}
