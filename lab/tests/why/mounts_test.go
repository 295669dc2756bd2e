package why_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

func mount(t *testing.T, node, fs, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount(node, dir, fs, 0, options); err != nil {
		t.Fatalf("mount %s: %v", fs, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %s: %v", fs, err)
		}
	})
	return dir
}

// vfat, which most memory cards have, does not tell the kernel which group dirtied a page.
func TestWhyNoCgroupWriteback(t *testing.T) {
	lab.Need(t, lab.Root, lab.Rates, lab.Once, lab.Guest, lab.V2, lab.Memory, lab.NoSystemd, lab.Command("mkdosfs"))
	t.Parallel()
	disk := lab.RawDisk(t)
	tool(t, "mkdosfs", disk.Node)
	disk.Dir = mount(t, disk.Node, "vfat", "")
	g := limited(t, "why-vfat", disk)
	r := explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.want(t, "no-cgroup-writeback", "breaks")
	for path, held := range map[string]string{"direct": "yes", "sync": "yes", "buffered": "no"} {
		if r.held(path, false) != held {
			t.Errorf("%s write: %q, want %q", path, r.held(path, false), held)
		}
	}
	if got := written(t, g, disk, filepath.Join(disk.Dir, "f")); got < 2*2e6 {
		t.Errorf("what the kernel wrote back got %.0f bytes/s at a limit of 2 MB/s: it was held", got)
	}
	g.proves(t, disk.Dir, "buffered", "not held")
	g.proves(t, disk.Dir, "sync", "held") // as the finding says of O_DSYNC
}

// A target's mounts can be on a disk without a limit, or on no disk; and a limit can be on a
// disk that no mount is on.
func TestWhyMounts(t *testing.T) {
	lab.Need(t, lab.Root, lab.Rates, lab.OnceV2, lab.Guest, lab.NoSystemd, lab.Overlay, lab.FS("ext4"))
	disk, bare, unused := lab.Disk(t, lab.FS("ext4")), lab.Disk(t, lab.FS("ext4")), lab.RawDisk(t)
	memory := mount(t, "none", "tmpfs", "")
	for _, name := range []string{"upper", "work"} {
		if err := os.Mkdir(filepath.Join(memory, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	overlay := mount(t, "overlay", "overlay", fmt.Sprintf("lowerdir=%s,upperdir=%s/upper,workdir=%[2]s/work", t.TempDir(), memory))
	g := limited(t, "why-mounts", disk)
	g.limit(t, unused, "2000000")
	idle := start(t, g, "writeback", 600, filepath.Join(disk.Dir, "f"))
	t.Cleanup(func() {
		_ = idle.Process.Kill()
		_ = idle.Wait() // killed
	})
	r := explain(t, "cgroup:"+g.path)
	if f := r.want(t, "unused-device", "note"); !strings.Contains(f.Evidence[0].Value, unused.Number.String()) {
		t.Errorf("unused-device: %+v", f)
	}
	without := ""
	for _, e := range r.want(t, "mount-without-device", "note").Evidence {
		without += e.Value + "\n"
	}
	if !strings.Contains(without, overlay) {
		t.Errorf("mount-without-device has %s, want %s", without, overlay)
	}
	f := r.want(t, "disk-without-limit", "note")
	if !strings.Contains(f.Evidence[0].Value, bare.Node) {
		t.Fatalf("disk-without-limit: %+v", f)
	}
	lab.Free(t, "a direct write, at a limit of 2 MB/s on another disk", 2*2e6, func() float64 {
		return rate(t, g, bare, "direct", 1, filepath.Join(bare.Dir, "f"))
	})
	f.paste(t, "weir set")
	explain(t, "cgroup:"+g.path).gone(t, "disk-without-limit")
	g.proves(t, bare.Dir, "direct", "held")
}
