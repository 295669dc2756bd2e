package full

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
)

// A limit on a containerd container, by its namespace and id, in a group that systemd
// has not made.
func TestContainerd(t *testing.T) {
	e := lab.Need(t, lab.Containerd, lab.Systemd, lab.FS("ext4"))
	longOnV1(t, e)
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	share(t, "containerd")
	tree := busybox.Tree(t)
	if err := os.Mkdir(filepath.Join(tree, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	weir, err := exec.LookPath("weir")
	if err != nil {
		t.Fatal(err)
	}
	run(t, "ctr", append([]string{"run", "--detach", "--mount", "type=bind,src=" + disk.Dir + ",dst=/data,options=rbind:rw",
		"--mount", "type=bind,src=" + weir + ",dst=/weir,options=rbind:ro", "--rootfs", tree, "weir-c"}, writing(e)...)...)
	t.Cleanup(func() {
		run(t, "ctr", "task", "rm", "--force", "weir-c")
		run(t, "ctr", "container", "rm", "weir-c")
		if _, said := mustWeir(t, "restore"); !strings.Contains(said, "no limit is saved") {
			t.Errorf("weir restore finds kept limits at the end:\n%s", said)
		}
	})
	mustWeir(t, "set", "containerd:default/weir-c", "--quiet", "--write", "1MB/s", "--on", disk.Dir)
	if shown, _ := mustWeir(t, "show", "--for", "0"); !strings.Contains(shown, "containerd:default/weir-c  ") {
		t.Errorf("weir show:\n%s", shown)
	}
	mustWeir(t, "clear", "containerd:default/weir-c", "--quiet")
	holds(t, e, disk, "containerd:default/weir-c", filepath.Join(cmp.Or(e.Cgroups.Blkio, e.Cgroups.Unified), "default/weir-c"), "containerd does not know this limit")

	// Its record sets the limit again where the container is started again.
	mustWeir(t, "set", "containerd:default/weir-c", "--quiet", "--write", "1MB/s", "--on", disk.Dir, "--persist")
	// What waits for the disk is not killed before it is there: it has no limit for now.
	mustWeir(t, "set", "containerd:default/weir-c", "--quiet", "--write", "max", "--on", disk.Dir)
	run(t, "ctr", "task", "rm", "--force", "weir-c")
	if _, said := mustWeir(t, "restore"); !strings.Contains(said, "containerd:default/weir-c is not running") {
		t.Errorf("of a stopped one weir restore says:\n%s", said)
	}
	run(t, "ctr", "task", "start", "--detach", "weir-c")
	mustWeir(t, "restore", "--quiet")
	if shown, _ := mustWeir(t, "show", "--for", "0", "containerd:default/weir-c"); !strings.Contains(shown, "1 MB/s") || !strings.Contains(shown, "weir keeps write 1 MB/s") {
		t.Errorf("after weir restore weir show has:\n%s", shown)
	}
	mustWeir(t, "clear", "containerd:default/weir-c", "--quiet")
}
