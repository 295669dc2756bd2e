package full

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-io/weir/lab"
)

// A limit on a container of containerd's, by its namespace and id. On v1 systemd moves
// containers with a group that it has not made out of it, into the root of blkio, when
// the first unit asks for that controller and when the last that did ends: other tests
// have such units, so that nothing can be measured there.
func TestContainerd(t *testing.T) {
	e := lab.Need(t, lab.Containerd, lab.Systemd, lab.V2, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	start(t, "containerd")
	tree := busyboxTree(t)
	if err := os.Mkdir(filepath.Join(tree, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "ctr", "run", "--detach", "--mount", "type=bind,src="+disk.Dir+",dst=/data,options=rbind:rw", "--rootfs", tree, "weir-c", "/bin/sh", "-c", endless)
	t.Cleanup(func() {
		run(t, "ctr", "task", "rm", "--force", "weir-c")
		run(t, "ctr", "container", "rm", "weir-c")
	})
	holds(t, e, disk, "containerd:default/weir-c", filepath.Join(e.Cgroups.Unified, "default/weir-c"), "containerd knows nothing of this limit")
}
