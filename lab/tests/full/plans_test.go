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
)

// weird keeps the plans of units, of Podman's containers and of libvirt's domains: each is limited when it
// starts and when it is started again, and keeps its limit when systemd reloads.
func TestPlansOfEachKind(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Podman, lab.Systemd, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	const rate = 5e6
	dir := "/etc/weir/plans.d"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	text := fmt.Sprintf("plans: {small: {write: %d}}\nassign:\n- {unit: 'weir-plan-*.service', plan: small}\n- {podman: 'plan-*', plan: small}\n- {vm: 'weir-plan-*', plan: small}\n", int(rate))
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
		lab.Await(t, 10*time.Second, "the limit of "+what, func() bool { return ruleOfGroup(t, group()) == ruleOf(e, rate) })
		t.Logf("%s has its limit after %v", what, time.Since(began))
	}

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
