package full

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
)

// A Podman container stores no more than its quota.
func TestPodmanQuota(t *testing.T) {
	e := lab.Need(t, lab.Podman, lab.Systemd, lab.FS("xfs"), lab.FS("ext4"))
	longOnV1(t, e)
	storage := lab.Disk(t, lab.FS("xfs"))
	const place = "/var/lib/containers"
	run(t, "mkdir", "-p", place)
	if err := unix.Mount(storage.Dir, place, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(place, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	run(t, "systemctl", "start", "podman.socket")
	t.Cleanup(func() {
		run(t, "systemctl", "stop", "podman.socket", "podman.service")
		run(t, "sh", "-c", "umount "+place+"/storage/overlay || true") // Podman's own, for as long as it runs
	})
	run(t, "podman", "import", "--quiet", busybox.Tar(t), "busybox")
	d := containerTest{e: e, disk: lab.Disk(t, lab.FS("ext4")), engine: "podman", title: "Podman"}
	if e.Cgroups.Blkio != "" {
		d.runtime = []string{"--runtime", "runc"}
	}
	d.container(t, "quota", nil, "/bin/sleep", "600")
	mustWeir(t, "quota", "set", "podman:quota", "20MB")
	out, err := exec.Command("podman", "exec", "quota", "/bin/busybox", "dd", "if=/dev/zero", "of=/big", "bs=4096", "count=10000").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "No space left on device") {
		t.Errorf("it writes on: %v: %s", err, out)
	}
	if shown, _ := mustWeir(t, "show", "--for", "0", "podman:quota"); !strings.Contains(shown, "of at most 20.0 MB") {
		t.Errorf("weir show:\n%s", shown)
	}
	mustWeir(t, "quota", "clear", "podman:quota")
	run(t, "podman", "exec", "quota", "/bin/busybox", "dd", "if=/dev/zero", "of=/big", "bs=4096", "count=10000")
}

// A containerd container whose root is an overlay stores no more than its quota.
func TestContainerdQuota(t *testing.T) {
	e := lab.Need(t, lab.Containerd, lab.Systemd, lab.FS("ext4"), lab.Overlay)
	longOnV1(t, e)
	disk := lab.Disk(t, lab.FS("ext4"))
	share(t, "containerd")
	dir := func(name string) string { return filepath.Join(disk.Dir, name) }
	run(t, "mkdir", dir("upper"), dir("work"), dir("root"))
	options := "lowerdir=" + busybox.Tree(t) + ",upperdir=" + dir("upper") + ",workdir=" + dir("work")
	if err := unix.Mount("overlay", dir("root"), "overlay", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir("root"), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	run(t, "ctr", "run", "--detach", "--rootfs", dir("root"), "weir-q", "/bin/sleep", "600")
	t.Cleanup(func() {
		run(t, "ctr", "task", "rm", "--force", "weir-q")
		run(t, "ctr", "container", "rm", "weir-q")
	})
	mustWeir(t, "quota", "set", "containerd:default/weir-q", "20MB")
	write := func(id string) ([]byte, error) {
		return exec.Command("ctr", "task", "exec", "--exec-id", id, "weir-q", "/bin/busybox", "dd", "if=/dev/zero", "of=/big", "bs=4096", "count=10000").CombinedOutput()
	}
	if out, err := write("first"); err == nil || !strings.Contains(string(out), "Disk quota exceeded") {
		t.Errorf("it writes on: %v: %s", err, out)
	}
	mustWeir(t, "quota", "clear", "containerd:default/weir-q")
	if out, err := write("second"); err != nil {
		t.Errorf("after clear: %v: %s", err, out)
	}
}
