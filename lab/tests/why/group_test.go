package why_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/lab"
)

// A group is a cgroup that a test has made by hand.
type group struct {
	dir, path string
	v2        bool
}

// newGroup makes a group below another one, or below the root, with controllers
// enabled for it (v2).
func newGroup(t *testing.T, above *group, name string, controllers ...string) group {
	t.Helper()
	cgroups := lab.Here(t).Cgroups
	g := group{v2: cgroups.IOInV2}
	root, parent := cgroups.Blkio, ""
	if g.v2 {
		root = cgroups.Unified
	}
	if above != nil {
		parent = above.path
	}
	g.path = parent + "/" + name
	g.dir = filepath.Join(root, g.path)
	for _, c := range controllers {
		if err := os.WriteFile(filepath.Join(root, parent, "cgroup.subtree_control"), []byte("+"+c), 0); err != nil {
			t.Fatal(err)
		}
	}
	lab.Cgroup(t, g.dir)
	return g
}

func (g group) set(t *testing.T, file, line string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, file), []byte(line), 0); err != nil {
		t.Fatalf("write %q: %v", line, err)
	}
}

func (g group) get(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// limit bounds the bytes written per second to a disk.
func (g group) limit(t *testing.T, disk *lab.TestDisk, bytes string) {
	t.Helper()
	if g.v2 {
		g.set(t, "io.max", disk.Number.String()+" wbps="+bytes)
	} else {
		g.set(t, "blkio.throttle.write_bps_device", disk.Number.String()+" "+bytes)
	}
}

// systemd overwrites a limit that was written without it, and keeps one that was set through
// it.
func TestWhyUnitDiffers(t *testing.T) {
	lab.Need(t, lab.Root, lab.Systemd, lab.V2, lab.Command("systemd-run"))
	disk := lab.RawDisk(t)
	const unit = "weir-why.service"
	tool(t, "systemd-run", "--quiet", "--unit", unit, "-p", "IOAccounting=yes", "sleep", "600")
	t.Cleanup(func() { tool(t, "systemctl", "stop", unit) })
	g := group{path: "/system.slice/" + unit, dir: filepath.Join(lab.Here(t).Cgroups.Unified, "system.slice", unit), v2: true}
	lab.Await(t, 20*time.Second, "the unit's io.max", func() bool {
		_, err := os.Stat(filepath.Join(g.dir, "io.max"))
		return err == nil
	})
	g.limit(t, disk, "2000000")
	explain(t, "cgroup:"+g.path, "--on", disk.Node).want(t, "unit-differs", "hurts").paste(t, "weir set")
	explain(t, "cgroup:"+g.path, "--on", disk.Node).gone(t, "unit-differs")
	tool(t, "systemctl", "daemon-reload")
	if got := g.get(t, "io.max"); !strings.Contains(got, "wbps=2000000") {
		t.Errorf("after daemon-reload io.max has %q", got)
	}
}
