package full

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/environ"
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
	t.Cleanup(func() { destroyDomain(t) })
	group := unifiedGroup(t, run(t, "virsh", "-q", "-c", "lxc:///", "domid", "weir-vm"))
	for !strings.HasSuffix(group, ".scope") {
		group = filepath.Dir(group)
	}
	holds(t, e, disk, "vm:weir-vm", filepath.Join(e.Cgroups.Unified, group), "libvirt knows nothing of this limit")
	t.Run("persist", func(t *testing.T) { persistDomain(t, e, disk, file) })
}

// destroyDomain ends the domain. libvirt 9.0 may fail at that (it reads a group that has
// just gone), and has done it all the same, or does it when it is asked again.
func destroyDomain(t *testing.T) {
	t.Helper()
	lab.Await(t, 30*time.Second, "the end of the domain", func() bool {
		_ = exec.Command("virsh", "-q", "-c", "lxc:///", "destroy", "weir-vm").Run()
		return !strings.Contains(run(t, "virsh", "-q", "-c", "lxc:///", "list", "--name"), "weir-vm")
	})
}

// With --persist libvirt sets the limit when it starts the domain again, until weir clear.
// Of a domain that runs it keeps nothing if it has no configuration of it.
func persistDomain(t *testing.T, e environ.Environ, disk *lab.TestDisk, file string) {
	virsh := func(args ...string) string {
		return run(t, "virsh", append([]string{"-q", "-c", "lxc:///"}, args...)...)
	}
	// A rule is on the scope, or on the group below that libvirt makes.
	rules := func() (all []string) {
		dir := filepath.Join(e.Cgroups.Unified, unifiedGroup(t, virsh("domid", "weir-vm")))
		for ; filepath.Base(dir) != "machine.slice"; dir = filepath.Dir(dir) {
			if got := ruleIn(t, filepath.Join(dir, "io.max"), disk.Number); got != "" {
				all = append(all, got)
			}
		}
		return all
	}
	set := []string{"set", "vm:weir-vm", "--write", "5MB/s", "--on", disk.Dir, "--persist"}
	if _, said, status := weir(t, set...); status == 0 || !strings.Contains(said, "transient domains") || len(rules()) > 0 {
		t.Errorf("of a transient domain: %d, %s, rules %q", status, said, rules())
	}
	destroyDomain(t)
	virsh("define", file)
	t.Cleanup(func() { virsh("undefine", "weir-vm") })
	virsh("start", "weir-vm")
	if would, _ := mustWeir(t, append(slices.Clone(set), "--dry-run")...); !strings.Contains(would, "run virsh --quiet --connect lxc:/// blkiotune --config --domain=weir-vm --device-write-bytes-sec="+disk.Node+",5000000") || len(rules()) > 0 {
		t.Errorf("a dry run has:\n%s\nand left the rules %q", would, rules())
	}
	if _, said := mustWeir(t, set...); !strings.Contains(said, "libvirt keeps it for the next start of vm:weir-vm") {
		t.Errorf("it said nothing of libvirt: %s", said)
	}
	restart := func() {
		destroyDomain(t)
		virsh("start", "weir-vm")
	}
	restart()
	if got := rules(); len(got) != 1 || !strings.Contains(got[0], "wbps=5000000") {
		t.Errorf("after a start the rules are %q", got)
	}
	mustWeir(t, "clear", "vm:weir-vm")
	restart()
	if got := rules(); len(got) > 0 {
		t.Errorf("after clear and a start the rules are %q", got)
	}
	mustWeir(t, append(set, "--quiet")...)
	destroyDomain(t)
	mustWeir(t, "clear", "vm:weir-vm")
	virsh("start", "weir-vm")
	if got := rules(); len(got) > 0 {
		t.Errorf("after clear while it was down, and a start, the rules are %q", got)
	}
}
