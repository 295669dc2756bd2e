package cgroupfs

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/fault"
)

func TestOfProcess(t *testing.T) {
	fs := newFS(t, map[string]string{"proc/1/mountinfo": mountTmpfs + mountHybrid + mountBlkio + mountNamed,
		"sys/fs/cgroup/unified/cgroup.controllers": "", "sys/fs/cgroup/blkio/": "", "sys/fs/cgroup/systemd/": "",
		"proc/7/cgroup":  "12:cpu,cpuacct:/a\n7:blkio:/b:with/colons\n1:name=systemd:/c\n0::/d\n",
		"proc/8/cgroup":  "7:blkio:/b (deleted)\n0::/d\n", // of a group that was removed; there is another /b
		"proc/12/cgroup": "7:blkio:/e (deleted)\n",        // of a group with that name
		"proc/13/cgroup": "7:blkio:/e (deleted)\n",        // of another, which was /e and is no more

		"sys/fs/cgroup/blkio/b/cgroup.procs": "7\n", "sys/fs/cgroup/blkio/e (deleted)/cgroup.procs": "12\n", "sys/fs/cgroup/blkio/e/cgroup.procs": "",
		"proc/10/cgroup":   "nonsense\n",
		"proc/11/cgroup":   "",
		"proc/self/cgroup": "7:blkio:/\n0::/\n",
	})
	blkio, unified := fs.With("blkio"), fs.Unified()
	for _, c := range []struct {
		h    *Hierarchy
		pid  int
		want string
	}{{blkio, 7, "/b:with/colons"}, {unified, 7, "/d"}, {fs.With("name=systemd"), 7, "/c"}, {blkio, 12, "/e (deleted)"}, {blkio, 0, "/"}} {
		g, err := fs.OfProcess(c.h, c.pid)
		if err != nil || g.Path() != c.want {
			t.Errorf("OfProcess(%s, %d) = %v, %v; want %s", c.h.MountPoint, c.pid, g, err, c.want)
		}
	}
	for pid, why := range map[int]string{10: "not ID:CONTROLLERS:/PATH", 11: "it is in no group of"} {
		if g, err := fs.OfProcess(blkio, pid); err == nil || !strings.Contains(err.Error(), why) || IsGone(err) {
			t.Errorf("OfProcess(%d) = %v, %v; want %q", pid, g, err, why)
		}
	}
	for _, pid := range []int{8, 13, 99} {
		if g, err := fs.OfProcess(blkio, pid); !IsGone(err) {
			t.Errorf("OfProcess(%d) of what is gone: %v, %v", pid, g, err)
		}
	}
}

// The kernel spells a group outside of this cgroup namespace from the namespace's root. Whoever names it is told
// so, and that weir cannot do it here; a group whose name only looks like that is one like any other.
func TestGroupsOutsideOfTheNamespace(t *testing.T) {
	fs := newFS(t, map[string]string{"proc/1/mountinfo": mountV2, "sys/fs/cgroup/cgroup.controllers": "io\n",
		"proc/1/cgroup": "0::/..\n", "proc/2/cgroup": "0::/../up\n", "proc/3/cgroup": "0::/../..\n", "proc/4/cgroup": "0::/..up\n"})
	h := fs.Unified()
	of := func(pid int) error { _, err := fs.OfProcess(h, pid); return err }
	named := func(path string) error { _, err := h.Group(path); return err }
	const remedy = " outside of this cgroup namespace; run weir on the host, or in a container with the host's cgroup namespace"
	for _, c := range []struct {
		err  error
		want string
	}{
		{of(1), "find cgroup of process 1: its group, /.., is" + remedy},
		{of(2), "find cgroup of process 2: its group, /../up, is" + remedy},
		{of(3), "find cgroup of process 3: its group, /../.., is" + remedy},
		{named("/.."), `find cgroup "/..": it is` + remedy},
		{named("/../up"), `find cgroup "/../up": it is` + remedy},
	} {
		if c.err == nil || c.err.Error() != c.want || fault.ClassOf(c.err) != fault.NotPossible {
			t.Errorf("%v, class %v; want %s", c.err, fault.ClassOf(c.err), c.want)
		}
	}
	if g, err := fs.OfProcess(h, 4); err != nil || g.Path() != "/..up" {
		t.Errorf("/..up: %v, %v", g, err)
	}
	if _, err := h.Group("/a/../b"); err == nil || fault.IsUnsupported(err) {
		t.Errorf("/a/../b, which no kernel spells: %v", err)
	}
}

func TestProcessesLeavesOutOtherNamespaces(t *testing.T) {
	g := groupOf(t, v2(t, map[string]string{"x/cgroup.procs": "7\n0\n8\n", "y/cgroup.procs": "seven\n"}), "/x")
	if got, err := g.Processes(); err != nil || !reflect.DeepEqual(got, []int{7, 8}) {
		t.Errorf("Processes = %v, %v", got, err)
	}
	y, err := g.h.Group("/y")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := y.Processes(); err == nil {
		t.Errorf("Processes = %v of a broken file", got)
	}
}

func FuzzMembership(f *testing.F) {
	for _, s := range []string{"0::/", "12:cpu,cpuacct:/a:b", "1:name=systemd:/c (deleted)", "::", "0:/", "x::/"} {
		f.Add(s)
	}
	h := &Hierarchy{Version: V2, MountPoint: "/c", MountRoot: "/", host: "/c"}
	f.Fuzz(func(t *testing.T, line string) {
		m, err := parseMembership(line)
		if err != nil {
			return
		}
		if !strings.HasPrefix(m.path, "/") {
			t.Fatalf("parseMembership(%q) = %+v", line, m)
		}
		if g, err := h.Group(m.path); err == nil && strings.Contains(g.Dir(), "..") && !strings.Contains(line, "..") {
			t.Fatalf("%q leads to %s", line, g.Dir())
		}
	})
}
