package why_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/lab"
)

// On v1 the kernel charges buffered writes to the root group, and a limit there holds them.
func TestWhyV1Writeback(t *testing.T) {
	lab.Need(t, lab.Root, lab.Rates, lab.V1, lab.Guest, lab.Once, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t, nil, "why-v1")
	g.limit(t, disk, "2000000")
	r := explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	f := r.want(t, "v1-writeback", "breaks")
	for path, held := range map[string]string{"direct": "yes", "sync": "yes", "mapped": "yes", "buffered": "no"} {
		if r.held(path, false) != held {
			t.Errorf("%s write: %q, want %q", path, r.held(path, false), held)
		}
	}
	lab.Free(t, "what the kernel writes back, at a limit of 2 MB/s", 2*2e6, func() float64 {
		return written(t, g, disk, filepath.Join(disk.Dir, "f"))
	})
	for path, band := range map[string]lab.Band{"sync": {Low: 0.6, High: 1.7}, "msync": {Low: 0.6, High: 1.7}} {
		lab.Ratio(t, path+" at the disk, of which weir why says held", 2e6, band, func() float64 {
			return rate(t, g, disk, path, 2, filepath.Join(disk.Dir, path))
		})
	}
	g.proves(t, disk.Dir, "buffered", "not held")
	f.paste(t, "blkio.throttle.write_bps_device")
	root := group{dir: lab.Here(t).Cgroups.Blkio}
	t.Cleanup(func() { root.set(t, "blkio.throttle.write_bps_device", disk.Number.String()+" 0") })
	r = explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.gone(t, "v1-writeback")
	r.want(t, "root-rule", "note")
	if got := written(t, g, disk, filepath.Join(disk.Dir, "g")); got > 2e6*1.3 {
		t.Errorf("what the kernel wrote back got %.0f bytes/s at the root group's limit of 2 MB/s", got)
	}
	// A limit there that is looser than the group's does not hold what is the group's.
	root.set(t, "blkio.throttle.write_bps_device", disk.Number.String()+" 200000000")
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).want(t, "v1-writeback", "breaks")
	g.proves(t, disk.Dir, "buffered", "not held")
}

// A group has no io.max if its parent does not enable the controller.
func TestWhyIONotEnabled(t *testing.T) {
	lab.Need(t, lab.Root, lab.Rates, lab.V2, lab.NoSystemd, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	above := newGroup(t, nil, "why-not-enabled", "io")
	g := newGroup(t, &above, "below")
	f := explain(t, "cgroup:"+g.path, "--write", "2MB/s", "--on", disk.Dir).want(t, "io-not-enabled", "breaks")
	f.paste(t, "+io")
	g.limit(t, disk, "2000000")
	r := explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.gone(t, "io-not-enabled")
	// That memory is not enabled does not matter: io brings it along, hidden.
	if strings.Contains(g.get(t, "cgroup.controllers"), "memory") {
		t.Fatal("memory came with io")
	}
	if r.held("buffered", false) != "device" || r.status != 0 {
		t.Errorf("buffered write: %q, status %d, findings %v", r.held("buffered", false), r.status, r.codes())
	}
	if got := written(t, g, disk, filepath.Join(disk.Dir, "f")) / 2e6; got > 1.3 {
		t.Errorf("what the kernel wrote back got %.2f of the limit, and weir why says held", got)
	}
	g.proves(t, disk.Dir, "direct", "held")
}

// Limits of the groups above apply on v2, and do not on v1.
func TestWhyAbove(t *testing.T) {
	e := lab.Need(t, lab.Root, lab.NoSystemd, lab.FS("ext4"))
	t.Parallel()
	disk := lab.Disk(t, lab.FS("ext4"))
	var above, g group
	if e.Cgroups.IOInV2 {
		above = newGroup(t, nil, "why-above", "io")
		above.limit(t, disk, "2000000")
		bare := newGroup(t, &above, "bare") // without io, as a service that was given its group makes it
		r := explain(t, "cgroup:"+bare.path, "--on", disk.Dir)
		r.want(t, "limit-above", "note")
		r.gone(t, "io-not-enabled")
		if r.held("direct", false) != "yes" || r.status != 0 {
			t.Errorf("below a limit, without io: a direct write is %q, status %d", r.held("direct", false), r.status)
		}
		bare.proves(t, disk.Dir, "direct", "held")
		g = newGroup(t, &above, "below", "io")
	} else {
		above = newGroup(t, nil, "why-above")
		g = newGroup(t, &above, "below")
	}
	above.limit(t, disk, "2000000")
	if !g.v2 {
		explain(t, "cgroup:"+g.path, "--on", disk.Dir).want(t, "v1-flat", "breaks").paste(t, "weir set")
		explain(t, "cgroup:"+g.path, "--on", disk.Dir).gone(t, "v1-flat")
		g.proves(t, disk.Dir, "direct", "held")
		return
	}
	r := explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	r.want(t, "limit-above", "note")
	if r.held("direct", false) != "yes" || r.status != 0 {
		t.Errorf("a direct write is %q, status %d", r.held("direct", false), r.status)
	}
	g.limit(t, disk, "8000000")
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).want(t, "parent-stricter", "note").paste(t, "weir set")
	explain(t, "cgroup:"+g.path, "--on", disk.Dir).gone(t, "parent-stricter")
}

// The kernel uses the memory controller to find which group dirtied a page. If that controller
// is on v1, the kernel charges writeback to the root group of v2. The boot parameter that
// fixes it gives the lab's mode hybrid-v2.
func TestWhyMemoryElsewhere(t *testing.T) {
	lab.Need(t, lab.Root, lab.Split, lab.FS("ext4"))
	disk := lab.Disk(t, lab.FS("ext4"))
	g := newGroup(t, nil, "why-split", "io")
	g.limit(t, disk, "2000000")
	r := explain(t, "cgroup:"+g.path, "--on", disk.Dir)
	f := r.want(t, "memory-elsewhere", "breaks")
	if !strings.Contains(strings.Join(f.Fixes[0].Lines, " "), "cgroup_no_v1=blkio,memory") {
		t.Errorf("the mend is %v", f.Fixes)
	}
	for path, held := range map[string]string{"direct": "yes", "sync": "yes", "buffered": "no"} {
		if r.held(path, false) != held {
			t.Errorf("%s write: %q, want %q", path, r.held(path, false), held)
		}
	}
	lab.Free(t, "what the kernel writes back, at a limit of 2 MB/s", 2*2e6, func() float64 {
		return written(t, g, disk, filepath.Join(disk.Dir, "f"))
	})
	g.proves(t, disk.Dir, "buffered", "not held")
	g.proves(t, disk.Dir, "direct", "held")
}

// If no hierarchy has the controller, it can be mounted.
func TestWhyNoIOController(t *testing.T) {
	const mend = "mkdir -p /run/blkio && mount -t cgroup -o blkio none /run/blkio"
	e := lab.Need(t, lab.Root, lab.Once, lab.V1, lab.Guest, lab.NoSystemd)
	alone := "umount " + e.Cgroups.Blkio + `
weir why --json || test $? = 3
` + mend + `
weir why --json || true`
	out, err := exec.Command("unshare", "-m", "sh", "-ec", alone).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var without, with report
	docs := json.NewDecoder(bytes.NewReader(out))
	if err := errors.Join(docs.Decode(&without), docs.Decode(&with)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if f := without.find("no-io-controller"); f == nil || len(f.Fixes) != 1 || !strings.HasSuffix(f.Fixes[0].Text, mend) {
		t.Errorf("without: %+v", without)
	}
	with.gone(t, "no-io-controller")
}

// The root group of v2 has no limits.
func TestWhyRootGroup(t *testing.T) {
	lab.Need(t, lab.Root, lab.V2)
	explain(t, "cgroup:/", "--write", "2MB/s", "--on", lab.RawDisk(t).Node).want(t, "root-group", "breaks")
}

// Files in memory are no disk I/O.
func TestWhyMemoryFileSystem(t *testing.T) {
	lab.Need(t, lab.Root, lab.Once, lab.Rates, lab.Guest)
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, 0) })
	explain(t, dir, "--write", "2MB/s").want(t, "no-block-device", "breaks")
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	explain(t, filepath.Join(dir, "f")).want(t, "no-block-device", "breaks")
}
