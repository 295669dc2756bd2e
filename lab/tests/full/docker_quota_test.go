package full

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
)

// A container's own files are bound on overlay2, and another's are not; the bound
// outlives a restart.
func (d containerTest) quota(t *testing.T) {
	longOnV1(t, d.e)
	for _, kind := range []string{"xfs", "ext4"} {
		t.Run(kind, func(t *testing.T) { d.quotaOn(t, kind) })
	}
}

func (d containerTest) quotaOn(t *testing.T, kind string) {
	if kind != "xfs" {
		lab.Need(t, lab.Whole) // TestContainerdQuota has ext4
	}
	disk := lab.Disk(t, lab.FS(kind))
	configured(t)
	reconfigure(t, "{", fmt.Sprintf("{\n\"data-root\": %q,", disk.Dir+"/docker"))
	t.Cleanup(func() { run(t, "systemctl", "stop", "docker.socket", "docker") }) // it has files on the disk
	run(t, d.engine, "import", busybox.Tar(t), "busybox")
	d.container(t, "held", nil, "/bin/sleep", "600")
	d.container(t, "free", nil, "/bin/sleep", "600")
	in := func(name, script string) (string, error) {
		out, err := exec.Command(d.engine, "exec", name, "/bin/sh", "-c", "B=/bin/busybox; "+script).CombinedOutput()
		return string(out), err
	}
	must := func(name, script string) string {
		t.Helper()
		out, err := in(name, script)
		if err != nil {
			t.Errorf("in %s, %s: %v: %s", name, script, err, out)
		}
		return strings.TrimSpace(out)
	}
	must("held", "$B mkdir /d; echo text >/f; $B ln -s f /s; $B rm /bin/echo")
	mustWeir(t, "quota", "set", "docker:held", "50MB")

	// What overlayfs does beside writing: whiteouts, copies up and renames, of what was
	// there before and is made now.
	must("held", "$B rmdir /tmp; $B mv /f /d/g; $B mv /s /d/s; $B ln /d/g /h; $B mkdir /e; $B mv /d /e/d; $B mv /etc /moved; [ $($B cat /e/d/g) = text ]; [ -L /e/d/s ]")

	refusal := map[string]string{"xfs": "No space left on device", "ext4": "Disk quota exceeded"}[kind]
	write := func(name string) {
		t.Helper()
		out, err := in(name, "$B dd if=/dev/zero of=/big bs=4096 count=16000 conv=fsync")
		size := must(name, "$B stat -c %s /big")
		t.Logf("%s on %s: %s bytes, %v", name, kind, size, err)
		if name == "free" {
			if err != nil || size != "65536000" {
				t.Errorf("one without a quota has written %s bytes: %v: %s", size, err, out)
			}
			return
		}
		var n int
		if _, scanErr := fmt.Sscan(size, &n); scanErr != nil {
			t.Fatal(scanErr)
		}
		// Its directories take some blocks too.
		if err == nil || !strings.Contains(out, refusal) || n > 50_000_000 || n < 49_500_000 {
			t.Errorf("%s has written %d bytes: %v: %s", name, n, err, out)
		}
	}
	write("held")
	write("free")
	shown, _ := mustWeir(t, "show", "--for", "0", "docker:held")
	if !strings.Contains(shown, "of at most 50.0 MB") {
		t.Errorf("weir show has no quota:\n%s", shown)
	}
	run(t, d.engine, "restart", "--time", "0", "held")
	write("held")
	mustWeir(t, "quota", "set", "docker:held", "60MB")
	must("held", "$B dd if=/dev/zero of=/more bs=4096 count=1000 conv=fsync")
	mustWeir(t, "quota", "clear", "docker:held")
	must("held", "$B dd if=/dev/zero of=/more bs=4096 count=5000 conv=fsync")

	mustWeir(t, "quota", "set", "docker:held", "1GB")
	d.remove(t, "held")
	listed, said := mustWeir(t, "quota", "show")
	if !strings.Contains(listed, "docker:held") || !strings.Contains(said, "its directory is gone") {
		t.Errorf("of a removed container:\n%s\n%s", listed, said)
	}
	mustWeir(t, "quota", "clear", "docker:held")
	if listed, _ := mustWeir(t, "quota", "show"); strings.Contains(listed, "held") {
		t.Errorf("after clear:\n%s", listed)
	}
	if kind != "xfs" {
		return
	}
	// Docker has project quotas on XFS: they are shown, and left alone.
	d.container(t, "own", []string{"--storage-opt", "size=20M"}, "/bin/sleep", "600")
	if listed, _ := mustWeir(t, "quota", "show", "docker:own"); !strings.Contains(listed, "21.0 MB") || !strings.Contains(listed, "not weir's") {
		t.Errorf("the quota that Docker has set:\n%s", listed)
	}
	if _, said, status := weir(t, "quota", "set", "docker:own", "10MB"); status != 1 || !strings.Contains(said, "already") {
		t.Errorf("beside Docker's own: %d: %s", status, said)
	}
}
