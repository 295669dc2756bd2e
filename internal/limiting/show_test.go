package limiting

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/internal/targets"
)

var (
	vda = blkdev.Number{Major: 254}
	vdb = blkdev.Number{Major: 254, Minor: 16}
)

func manager(t *testing.T, name string, files map[string]string, o host.Options) Manager {
	t.Helper()
	return Manager{hosttest.Open(t, name, files, o)}
}

func TestShowATarget(t *testing.T) {
	shown, err := manager(t, "v2", nil, host.Options{}).Show(context.Background(), "cgroup:/batch", 0)
	if err != nil {
		t.Fatal(err)
	}
	if shown.Target == nil || shown.Window != 0 || len(shown.Groups) != 1 {
		t.Fatalf("%+v", shown)
	}
	g := shown.Groups[0]
	if g.Target != "cgroup:/batch" || g.Path != "/batch" || g.Version != cgroupfs.V2 || g.Processes != 2 || len(g.Devices) != 2 {
		t.Errorf("%+v", g)
	}
	want := limit.None.With(limit.WBPS, limit.PerSecond(10e6)).With(limit.WIOPS, limit.PerSecond(500))
	if d := g.Devices[0]; d.Number != vda || d.Node != "/dev/vda" || d.Limit != want || d.Rates != nil || d.Expected == nil || d.Expected.Direct.Mechanism != place.Throttle {
		t.Errorf("%+v", d)
	}
	if d := g.Devices[1]; d.Number != vdb || d.Limit.Get(limit.RBPS) != limit.PerSecond(50<<20) {
		t.Errorf("%+v", d)
	}
}

// Who does not see what root's pacer holds is not told that nothing holds buffered writes. What the kernel holds
// is known to everybody.
func TestHiddenPacer(t *testing.T) {
	files := map[string]string{"run/weir/pacer.lock": ""}
	for _, c := range []struct {
		host, target string
		sees, known  bool
	}{
		{"v1", "cgroup:/batch", true, true}, {"v1", "cgroup:/batch", false, false}, {"v2", "cgroup:/batch", false, true},
	} {
		m := manager(t, c.host, files, host.Options{})
		if !c.sees {
			m.Host.State = state.At(t.TempDir())
		}
		shown, err := m.Show(context.Background(), c.target, 0)
		if err != nil {
			t.Fatal(err)
		}
		devices := shown.Groups[0].Devices
		at := slices.IndexFunc(devices, func(d Device) bool { return d.Number == vda })
		if got := devices[at].Expected != nil; got != c.known {
			t.Errorf("%s, root's records can be read: %v: expected is known: %v", c.host, c.sees, got)
		}
	}
}

// A device is named once, and one that is gone goes by its number.
func TestShowAll(t *testing.T) {
	files := map[string]string{"sys/fs/cgroup/alone/io.max": "8:0 rbps=1000 wbps=max riops=max wiops=max\n"}
	shown, err := manager(t, "v2", files, host.Options{}).ShowAll(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, g := range shown.Groups {
		for _, d := range g.Devices {
			names[g.Target] = append(names[g.Target], d.Node)
		}
	}
	if shown.Target != nil || !slices.Equal(names["cgroup:/batch"], []string{"/dev/vda", "/dev/vdb"}) || !slices.Equal(names["cgroup:/alone"], []string{"8:0"}) {
		t.Errorf("%v", names)
	}
}

func TestShowRefuses(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	var notFound *targets.NotFound
	if _, err := m.Show(context.Background(), "cgroup:/none", 0); !errors.As(err, &notFound) {
		t.Errorf("an unknown group: %v", err)
	}
	var name *targets.NameError
	if _, err := m.Show(context.Background(), "", 0); !errors.As(err, &name) {
		t.Errorf("a target without a name is not every group: %v", err)
	}
	if _, err := manager(t, "v2", nil, host.Options{Version: cgroupfs.V1}).ShowAll(context.Background(), 0); !fault.IsUnsupported(err) {
		t.Errorf("a version that is not mounted: %v", err)
	}
}

// What weir has on record for the next start is shown with a target that has a name for good.
func TestShowKept(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	entries := []limit.Asked{{On: "/data", Limit: limit.Limit{WBPS: limit.PerSecond(1e6)}}}
	r := keep.Saved{Target: "docker:abc", Name: "docker:web", Entries: entries}
	text, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	m = manager(t, "v2", map[string]string{keep.SavedPath("docker:abc"): text}, host.Options{})
	io, err := m.Host.IO()
	if err != nil {
		t.Fatal(err)
	}
	group, err := io.Group("/batch")
	if err != nil {
		t.Fatal(err)
	}
	its := targets.Target{Kind: "docker", Name: "web", Group: group, Lasting: "docker:abc", Record: &targets.Record{By: "Docker"}}
	var g Group
	if _, err := m.markTarget(context.Background(), its, &g); err != nil || !slices.Equal(g.Kept, entries) || g.Target != "docker:web" || g.Record.By != "Docker" {
		t.Errorf("%+v, %v", g, err)
	}
	g = Group{}
	its.Lasting = ""
	if _, err := m.markTarget(context.Background(), its, &g); err != nil || g.Kept != nil {
		t.Errorf("without a name for good: %+v, %v", g, err)
	}
}

// A group is the pacer's if path and version are; what lapsed is told only where nothing else
// holds the group.
func TestMarkJobs(t *testing.T) {
	job := func(controller, path, count, lapsed string, wbps uint64) pacer.Job {
		j := pacer.Job{WBPS: wbps, Lapsed: lapsed, Missed: "pid 7"}
		j.Count = count
		j.Limited.Controller, j.Limited.Path = controller, path
		return j
	}
	jobs := []pacer.Job{
		job("blkio", "/a", pacer.CountWritten, "", 10), job("", "/b", pacer.CountEscaped, "", 20),
		job("", "/c", pacer.CountWritten, "gone", 30), job("", "/d", pacer.CountWritten, "gone", 40), job("", "/d", pacer.CountWritten, "", 50),
	}
	groups := []Group{{Path: "/a", Version: cgroupfs.V1}, {Path: "/a", Version: cgroupfs.V2}, {Path: "/b", Version: cgroupfs.V2},
		{Path: "/c", Version: cgroupfs.V2}, {Path: "/d", Version: cgroupfs.V2}}
	markJobs(groups, jobs)
	for i, want := range []Group{{Paced: 10, Missed: "pid 7"}, {}, {Escapes: 20, Missed: "pid 7"}, {Lapsed: "gone"}, {Paced: 50, Missed: "pid 7"}} {
		g := groups[i]
		if g.Paced != want.Paced || g.Escapes != want.Escapes || g.Lapsed != want.Lapsed || g.Missed != want.Missed {
			t.Errorf("%s of version %d: %+v", g.Path, g.Version, g)
		}
	}
}

// A daemon is asked once, and only about groups that have no better name.
func TestNameOthers(t *testing.T) {
	groups := []Group{{Target: "docker:web", Path: "/a"}, {Target: "cgroup:/b", Path: "/b"}, {Target: "unit:c.scope", Path: "/c"},
		{Target: "cgroup:/", Path: "/", Owner: targets.Owner{Kind: "kernel"}}, {Target: "cgroup:/d", Path: "/d"}}
	asked := 0
	nameOthers(groups, "kubernetes", func() func(string) string {
		asked++
		return func(group string) string {
			return map[string]string{"/a": "x", "/b": "pod:b", "/c": "pod:c", "/": "x"}[group]
		}
	})
	var names []string
	for _, g := range groups {
		names = append(names, g.Target)
	}
	if asked != 1 || !slices.Equal(names, []string{"docker:web", "pod:b", "pod:c", "cgroup:/", "cgroup:/d"}) {
		t.Errorf("asked %d times: %q", asked, names)
	}
	nameOthers(groups[:1], "kubernetes", func() func(string) string { t.Error("it is asked though nobody needs it"); return nil })
}

// Groups that cannot be read hide no others: each is left out and named, up to a bound.
func TestShowLeavesUnreadGroupsOut(t *testing.T) {
	files := map[string]string{"sys/fs/cgroup/batch/io.stat": "8:0 rbytes=x\n", "sys/fs/cgroup/good/io.max": "254:0 rbps=max wbps=1 riops=max wiops=max\n", "sys/fs/cgroup/good/below/io.max": "254:0 wbps=2\n",
		"sys/fs/cgroup/fifo/x": ""}
	for name, text := range map[string]string{"range": "254:0 wbps=18446744073709551616\n", "less": "254:0 wbps=-5\n", "odd": "x\x1b[2J\n", "huge": strings.Repeat("x", 2<<20)} {
		files["sys/fs/cgroup/"+name+"/io.max"] = text
	}
	m := manager(t, "v2", files, host.Options{})
	if err := unix.Mkfifo(filepath.Join(m.Host.Root, "sys/fs/cgroup/fifo/io.max"), 0o600); err != nil {
		t.Fatal(err)
	}
	shown, err := m.ShowAll(t.Context(), time.Millisecond)
	var paths []string
	for _, g := range shown.Groups {
		paths = append(paths, g.Path)
	}
	slices.Sort(paths)
	if want := []string{"/batch", "/batch/night", "/good", "/good/below"}; err != nil || !slices.Equal(slices.DeleteFunc(paths, func(p string) bool { return p == "/alone" }), want) {
		t.Errorf("%q, %v", paths, err)
	}
	unread := 0
	for _, n := range shown.Notes {
		if n.Code == "group-unread" {
			unread++
		}
	}
	if unread != 5 { // four, and the one whose counters are odd
		t.Errorf("%d are told of: %v", unread, shown.Notes)
	}
	for target, want := range map[string]string{"cgroup:/batch": "read counters", "cgroup:/odd": "parse "} {
		if _, err := m.Show(t.Context(), target, time.Millisecond); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", target, err)
		}
	}
	for i := range 20 {
		files["sys/fs/cgroup/many"+strconv.Itoa(i)+"/io.max"] = "x\n"
	}
	if shown, err = manager(t, "v2", files, host.Options{}).ShowAll(t.Context(), 0); err != nil || len(shown.Notes) != 9 || !strings.Contains(shown.Notes[8].Text, "16 more") {
		t.Errorf("%v, %v", shown.Notes, err)
	}
}
