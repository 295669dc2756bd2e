package full

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
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

// A limit on a libvirt domain holds what it writes, and libvirt need not
// be asked. Its LXC driver makes no domain without a memory controller, so on v1 it would
// take a kernel older than 6.12; there, on user-mode Linux 6.1, the domain's controller
// process dies in its first second.
func TestVM(t *testing.T) {
	e := lab.Need(t, lab.Libvirt, lab.Systemd, lab.V2, lab.Memory, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	startLibvirt(t)
	t.Cleanup(func() {
		if log, err := os.ReadFile("/var/log/libvirt/lxc/weir-vm.log"); err == nil && t.Failed() {
			t.Logf("the domain's log:\n%s", log)
		}
	})
	tree := busybox.Tree(t)
	if err := os.Mkdir(filepath.Join(tree, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := domain{uri: "lxc:///", name: "weir-vm", file: filepath.Join(t.TempDir(), "domain.xml")}
	if err := os.WriteFile(d.file, fmt.Appendf(nil, writingDomain, strings.ReplaceAll(endless, ">", "&gt;"), tree, disk.Dir), 0o600); err != nil {
		t.Fatal(err)
	}
	d.virsh(t, "create", d.file)
	t.Cleanup(func() { d.destroy(t) })
	holds(t, e, disk, "vm:weir-vm", d.limited(t, e), "libvirt does not know this limit")
	t.Run("persist", func(t *testing.T) { d.persist(t, e, disk) })
}

// A domain is a libvirt domain that a test starts.
type domain struct {
	uri, name string
	file      string // its description
}

func (d domain) virsh(t *testing.T, args ...string) string {
	t.Helper()
	return run(t, "virsh", append([]string{"-q", "-c", d.uri}, args...)...)
}

// group is the one of a domain's first process, below the root of those that limit disk
// I/O.
func (d domain) group(t *testing.T) string {
	t.Helper()
	driver, _, _ := strings.Cut(d.uri, ":")
	pid, err := os.ReadFile("/run/libvirt/" + driver + "/" + d.name + ".pid")
	if err != nil {
		t.Fatal(err)
	}
	return ioGroup(t, strings.TrimSpace(string(pid)))
}

// limited is the group of a domain that runs which libvirt's own limits are on: the
// process's on v1, and on v2 the one right below the scope.
func (d domain) limited(t *testing.T, e environ.Environ) string {
	t.Helper()
	group := d.group(t)
	for e.Cgroups.Blkio == "" && !strings.HasSuffix(filepath.Dir(group), ".scope") {
		if group == "/" {
			t.Fatalf("%s is in no scope: %s", d.name, d.group(t))
		}
		group = filepath.Dir(group)
	}
	return filepath.Join(cmp.Or(e.Cgroups.Blkio, e.Cgroups.Unified), group)
}

// destroy ends the domain. libvirt 9.0 may fail at that (it reads a group that has
// just gone), and has done it all the same, or does it when it is asked again.
func (d domain) destroy(t *testing.T) {
	t.Helper()
	lab.Await(t, 30*time.Second, "the end of the domain", func() bool {
		_ = exec.Command("virsh", "-q", "-c", d.uri, "destroy", d.name).Run()
		return !strings.Contains(d.virsh(t, "list", "--name"), d.name)
	})
}

// With --persist libvirt sets the limit when it starts the domain again, until weir clear.
// Of a domain that runs it keeps nothing if it has no configuration of it.
func (d domain) persist(t *testing.T, e environ.Environ, disk *lab.TestDisk) {
	spec := "vm:" + d.name
	virsh := func(args ...string) { d.virsh(t, args...) }
	rules := func() []string { return d.rules(t, e, disk) }
	set := []string{"set", spec, "--write", "5MB/s", "--on", disk.Dir, "--persist"}
	if _, said, status := weir(t, set...); status == 0 || !strings.Contains(said, "transient domains") || len(rules()) > 0 {
		t.Errorf("of a transient domain: %d, %s, rules %q", status, said, rules())
	}
	d.destroy(t)
	virsh("define", d.file)
	t.Cleanup(func() { virsh("undefine", d.name) })
	virsh("start", d.name)
	if would, _ := mustWeir(t, append(slices.Clone(set), "--dry-run")...); !strings.Contains(would, "run virsh --quiet --connect "+d.uri+" blkiotune --config --domain="+d.name+" --device-write-bytes-sec="+disk.Node+",5000000") || len(rules()) > 0 {
		t.Errorf("a dry run has:\n%s\nand left the rules %q", would, rules())
	}
	if _, said := mustWeir(t, set...); !strings.Contains(said, "libvirt keeps the limit for the next start of "+spec) {
		t.Errorf("it said nothing of libvirt: %s", said)
	}
	restart := func() {
		d.destroy(t)
		virsh("start", d.name)
	}
	restart()
	if got := rules(); len(got) != 1 || got[0] != ruleOf(e, 5e6) {
		t.Errorf("after a start the rules are %q", got)
	}
	mustWeir(t, "clear", spec)
	if got := rules(); len(got) > 0 {
		t.Errorf("after clear the rules are %q", got)
	}
	restart()
	if got := rules(); len(got) > 0 {
		t.Errorf("after clear and a start the rules are %q", got)
	}
	mustWeir(t, append(set, "--quiet")...)
	d.destroy(t)
	if would, _ := mustWeir(t, "clear", spec, "--dry-run"); !strings.Contains(would, "--device-write-bytes-sec="+disk.Node+",0") {
		t.Errorf("a dry run of clear has:\n%s", would)
	}
	mustWeir(t, "clear", spec)
	virsh("start", d.name)
	if got := rules(); len(got) > 0 {
		t.Errorf("after clear while it was down, and a start, the rules are %q", got)
	}
}

// rules are those for writes to a disk of a domain that runs: on the scope, or on the groups
// below that libvirt makes.
func (d domain) rules(t *testing.T, e environ.Environ, disk *lab.TestDisk) (all []string) {
	t.Helper()
	file := "io.max"
	if e.Cgroups.Blkio != "" {
		file = "blkio.throttle.write_bps_device"
	}
	for dir := d.group(t); filepath.Base(dir) != "machine.slice"; dir = filepath.Dir(dir) {
		path := filepath.Join(cmp.Or(e.Cgroups.Blkio, e.Cgroups.Unified), dir, file)
		if _, err := os.Stat(path); os.IsNotExist(err) {
			continue // of QEMU's threads, which libvirt gives no io controller
		}
		if got := ruleIn(t, path, disk.Number); got != "" {
			all = append(all, got)
		}
	}
	return all
}
