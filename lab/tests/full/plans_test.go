package full

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
	"github.com/weir-io/weir/lab/environ"
)

// planRate is the limit of each target with a plan, in bytes per second.
const planRate = 5e6

// weird keeps the plans of units, of Podman's and containerd's containers and of libvirt's domains: each is limited when it
// starts and when it is started again, and keeps its limit when systemd reloads.
func TestPlansOfEachKind(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Podman, lab.Systemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	dir := "/etc/weir/plans.d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	text := fmt.Sprintf("plans: {small: {write: %d}}\nassign:\n- {unit: 'weir-plan-*.service', plan: small}\n- {podman: 'plan-*', plan: small}\n- {vm: 'weir-plan-*', plan: small}\n- {containerd: 'default/ctr-*', plan: small}\n", int(planRate))
	if err := os.WriteFile(filepath.Join(dir, "kinds.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	startWeird(t)

	ruleOfGroup := func(t *testing.T, group string) string {
		file := filepath.Join(group, cmp.Or(map[bool]string{true: "blkio.throttle.write_bps_device"}[e.Cgroups.Blkio != ""], "io.max"))
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		return ruleIn(t, file, disk.Number)
	}
	limited := func(t *testing.T, what string, group func() string) {
		t.Helper()
		began := time.Now()
		lab.Await(t, 10*time.Second, "the limit of "+what, func() bool { return ruleOfGroup(t, group()) == ruleOf(e, planRate) })
		t.Logf("%s has its limit after %v", what, time.Since(began))
	}

	t.Run("containerd", func(t *testing.T) { ofContainerd(t, e, disk, limited, ruleOfGroup) })

	t.Run("unit", func(t *testing.T) {
		const other = "other-weir-plan.service"
		root := filepath.Join(cmp.Or(e.Cgroups.Blkio, e.Cgroups.Unified), "system.slice")
		const unit = "weir-plan-1.service"
		for _, name := range []string{unit, other} {
			file := "/run/systemd/system/" + name
			if err := os.WriteFile(file, []byte("[Service]\nExecStart=/bin/sleep 600\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				run(t, "systemctl", "stop", name)
				if err := os.Remove(file); err != nil {
					t.Error(err)
				}
				run(t, "systemctl", "daemon-reload")
			})
		}
		run(t, "systemctl", "daemon-reload")
		run(t, "systemctl", "start", unit, other)
		group := func() string { return filepath.Join(root, unit) }
		limited(t, unit, group)
		was := run(t, "systemctl", "show", "-P", "MainPID", unit)
		run(t, "systemctl", "restart", unit)
		if now := run(t, "systemctl", "show", "-P", "MainPID", unit); now == was {
			t.Errorf("it was not started again: %s", now)
		}
		limited(t, unit+", started again,", group)
		run(t, "systemctl", "stop", unit)
		run(t, "systemctl", "start", unit)
		limited(t, unit+", stopped and started,", group)
		run(t, "systemctl", "daemon-reload")
		limited(t, unit+", after a reload,", group)
		if got := ruleOfGroup(t, filepath.Join(root, other)); got != "" {
			t.Errorf("a unit without a plan has %q", got)
		}
	})

	t.Run("podman", func(t *testing.T) {
		run(t, "systemctl", "start", "podman.socket")
		t.Cleanup(func() { run(t, "systemctl", "stop", "podman.socket", "podman.service") })
		run(t, "podman", "import", "--quiet", busybox.Tar(t), "busybox")
		t.Cleanup(func() { run(t, "podman", "rmi", "--force", "busybox") })
		d := containerTest{e: e, disk: disk, engine: "podman", title: "Podman"}
		if e.Cgroups.Blkio != "" {
			d.runtime = []string{"--runtime", "runc"} // crun refuses hybrid hosts and v1 hosts without cpuset
		}
		for _, name := range []string{"plan-1", "other"} {
			d.container(t, name, nil, "/bin/sleep", "600")
		}
		group := func() string { return d.group(t, "plan-1") }
		limited(t, "a container of Podman", group)
		was := group()
		run(t, "podman", "restart", "--time", "0", "plan-1")
		limited(t, "a container that was started again", group)
		t.Logf("its groups were %s, %s", was, group())
		if got := d.rule(t, "other"); got != "" {
			t.Errorf("a container without a plan has %q", got)
		}
	})

	t.Run("vm", func(t *testing.T) {
		lab.Need(t, lab.Libvirt, lab.V2, lab.Memory)
		startLibvirt(t)
		d := domain{uri: "lxc:///", name: "weir-plan-vm", file: filepath.Join(t.TempDir(), "domain.xml")}
		tree := busybox.Tree(t)
		if err := os.Mkdir(filepath.Join(tree, "data"), 0o755); err != nil {
			t.Fatal(err)
		}
		description := fmt.Sprintf(strings.Replace(writingDomain, "weir-vm", d.name, 1), "sleep 600", tree, disk.Dir)
		if err := os.WriteFile(d.file, []byte(description), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.destroy(t) })
		for _, what := range []string{"a domain", "a domain that was started again"} {
			d.virsh(t, "create", d.file)
			limited(t, what, func() string { return d.limited(t, e) })
			d.destroy(t)
		}
	})

	for line := range strings.Lines(run(t, "weird", "status")) { // others' targets are there too, whose daemons have been stopped
		if (strings.Contains(line, "plan-1") || strings.Contains(line, "plan-vm")) && strings.Contains(line, "failed") {
			t.Errorf("weird status: %s", line)
		}
	}
}

// ofContainerd has containers of containerd, which does not ask weird before it starts them: the cgroup tree alone tells of
// them. They keep their limits while containerd is started again, and after that others get theirs.
func ofContainerd(t *testing.T, e environ.Environ, disk *lab.TestDisk, limited func(*testing.T, string, func() string), rule func(*testing.T, string) string) {
	lab.Need(t, lab.Containerd)
	share(t, "containerd")
	tree := busybox.Tree(t)
	if err := os.Mkdir(filepath.Join(tree, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	group := func(name string) func() string {
		return func() string { return filepath.Join(cmp.Or(e.Cgroups.Blkio, e.Cgroups.Unified), "default", name) }
	}
	begin := func(name string) {
		t.Helper()
		run(t, "ctr", "run", "--detach", "--mount", "type=bind,src="+disk.Dir+",dst=/data,options=rbind:rw", "--rootfs", tree, name, "/bin/sleep", "600")
		t.Cleanup(func() {
			run(t, "ctr", "task", "rm", "--force", name)
			run(t, "ctr", "container", "rm", name)
		})
	}
	for _, name := range []string{"other", "ctr-1"} {
		begin(name)
	}
	limited(t, "a container of containerd", group("ctr-1"))
	run(t, "ctr", "task", "rm", "--force", "ctr-1")
	run(t, "ctr", "task", "start", "--detach", "ctr-1")
	limited(t, "a container that was started again", group("ctr-1"))
	run(t, "systemctl", "restart", "containerd")
	if got := rule(t, group("ctr-1")()); got != ruleOf(e, planRate) {
		t.Errorf("after a restart of containerd it has %q", got)
	}
	begin("ctr-2")
	limited(t, "a container started after that", group("ctr-2"))
	run(t, "ctr", "task", "rm", "--force", "ctr-1")
	run(t, "ctr", "task", "start", "--detach", "ctr-1")
	limited(t, "the first one, started again after that,", group("ctr-1"))
	if got := rule(t, group("other")()); got != "" {
		t.Errorf("a container without a plan has %q", got)
	}
	for line := range strings.Lines(run(t, "weird", "status")) {
		if strings.Contains(line, "ctr-") && !strings.Contains(line, "in-force") {
			t.Errorf("weird status: %s", line)
		}
	}
}
