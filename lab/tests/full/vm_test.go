package full

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
)

// writingDomain is an LXC domain that writes to a disk through the page cache.
const writingDomain = `<domain type="lxc">
	<name>weir-vm</name>
	<memory unit="MiB">1024</memory>
	<os><type>exe</type><init>/bin/sh</init><initarg>-c</initarg><initarg>%s</initarg></os>
	<devices>
		<filesystem type="mount"><source dir="%s"/><target dir="/"/></filesystem>
		<filesystem type="mount"><source dir="%s"/><target dir="/data"/></filesystem>
		<console type="pty"/>
	</devices>
</domain>
`

// S27, S28: a limit on a domain of libvirt's holds what it writes, and libvirt need not
// be asked. Its LXC driver makes no domain without a memory controller, so on v1 it would
// take a kernel older than 6.12; there, on user-mode Linux 6.1, the domain's controller
// process dies in its first second.
func TestVM(t *testing.T) {
	e := lab.Need(t, lab.Libvirt, lab.Systemd, lab.V2, lab.Memory, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	startLibvirt(t)
	t.Cleanup(func() {
		if log, err := os.ReadFile("/var/log/libvirt/lxc/weir-vm.log"); err == nil && t.Failed() {
			t.Logf("the domain's log:\n%s", log)
		}
	})
	tree := busyboxTree(t)
	if err := os.Mkdir(filepath.Join(tree, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "domain.xml")
	if err := os.WriteFile(file, fmt.Appendf(nil, writingDomain, strings.ReplaceAll(endless, ">", "&gt;"), tree, disk.Dir), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "virsh", "-q", "-c", "lxc:///", "create", file)
	t.Cleanup(func() { run(t, "virsh", "-q", "-c", "lxc:///", "destroy", "weir-vm") })
	group := unifiedGroup(t, run(t, "virsh", "-q", "-c", "lxc:///", "domid", "weir-vm"))
	for !strings.HasSuffix(group, ".scope") {
		group = filepath.Dir(group)
	}
	holds(t, e, disk, "vm:weir-vm", filepath.Join(e.Cgroups.Unified, group), "libvirt knows nothing of this limit")
}
