package full

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/lab"
	"github.com/weir-io/weir/lab/busybox"
)

// A file that an earlier container made in a volume stays charged to that container's group.
// weir set says that its writes are not held, and after weir why --mend they are.
func TestDockerForeignInode(t *testing.T) {
	e := lab.Need(t, lab.Whole, lab.Docker, lab.Systemd, lab.BPF, lab.V2, lab.Memory, lab.FS("ext4"))
	start(t, "docker")
	t.Cleanup(func() { run(t, "systemctl", "stop", "docker.socket", "containerd") })
	run(t, "docker", "import", busybox.Tar(t), "busybox")
	d := containerTest{e: e, disk: lab.Disk(t, lab.FS("ext4")), engine: "docker", title: "Docker"}
	d.container(t, "earlier", nil, "/bin/sh", "-c", "/bin/busybox dd if=/dev/zero of=/data/f bs=65536 count=256; /bin/busybox sync; /bin/sleep 600")
	file := filepath.Join(d.disk.Dir, "f")
	lab.Await(t, commandMax, "the earlier container's file", func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() == 256*65536
	})
	run(t, "sync", "-f", d.disk.Dir)
	open, err := os.Open(file) // the kernel does not forget its inode
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { open.Close() })
	run(t, "docker", "rm", "--force", "earlier")

	const rate = 500_000                                                                                         // an emulated container writes about 2 MB/s
	job := load.Job{Path: load.Buffered, File: "/data/f", Block: 64 << 10, Size: 256 * 64 << 10, For: time.Hour} // it keeps the file open
	d.container(t, "web", nil, append([]string{"/weir", "__load"}, job.Args()...)...)
	own := lab.Charged(d.group(t, "web"), d.disk.Number)
	share := func(window time.Duration) (charged, written int64) {
		before, _ := own()
		_, from := lab.DeviceBytes(t, d.disk.Number)
		time.Sleep(window)
		after, _ := own()
		_, to := lab.DeviceBytes(t, d.disk.Number)
		return after - before, int64(to - from)
	}
	lab.Await(t, commandMax, "writeback", func() bool { _, written := share(5 * time.Second); return written > rate })
	_, said := mustWeir(t, "set", "docker:web", "--write", "500kB/s", "--hold", "kernel", "--on", d.disk.Dir)
	t.Log(said)
	if want := "buffered writes to /data/f are NOT held: the kernel charges their writeback to "; !strings.Contains(said, want) || !strings.Contains(said, "weir why docker:web --mend") {
		t.Errorf("it said nothing of %q", want)
	}
	if charged, written := share(20 * time.Second); charged*2 > written {
		t.Errorf("%d of %d bytes are charged to the container before the file is moved", charged, written)
	}
	stdout, stderr, _ := weir(t, "why", "docker:web", "--mend")
	t.Log(stdout, stderr)
	if !strings.Contains(stderr, "/data/f: charged to cgroup ") {
		t.Error("the file is not moved")
	}
	if _, said := mustWeir(t, "set", "docker:web", "--write", "500kB/s", "--on", d.disk.Dir); strings.Contains(said, "NOT held") {
		t.Errorf("after that: %s", said)
	}
	var charged, written int64
	began := time.Now()
	for charged < 4<<20 && time.Since(began) < commandMax { // a request of 8 MiB takes 17 s
		c, w := share(5 * time.Second)
		charged, written = charged+c, written+w
	}
	t.Logf("after that %d of %d bytes are charged to the container", charged, written)
	if most := int64(rate*1.2*time.Since(began).Seconds()) + 8<<20; charged > most {
		t.Errorf("after that the container was let do %d bytes, want at most %d", charged, most)
	}
	if charged*10 < written*9 || charged < 4<<20 {
		t.Errorf("after that %d of %d bytes are charged to the container", charged, written)
	}
}
