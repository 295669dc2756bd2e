package limiting

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/targets"
)

// write is a line that a deed wrote, or a dry run shows: of a file that is kept, its text.
type write struct{ file, line string }

// did are the lines that a copy's kernel got, and the files below /var and /etc that differ from
// what they were before; a file that is gone has no line.
func did(k *hosttest.Kernel, root string, before, after map[string]string) (all []write) {
	for _, w := range k.Writes {
		all = append(all, write{w.File, w.Line})
	}
	for _, dir := range []string{"/var/", "/etc/"} {
		for file, text := range after {
			if strings.HasPrefix(file, root+dir) && before[file] != text {
				all = append(all, write{file, text})
			}
		}
		for file := range before {
			if _, there := after[file]; strings.HasPrefix(file, root+dir) && !there {
				all = append(all, write{file, ""})
			}
		}
	}
	return all
}

// A dry run shows what the deed writes, line for line and file for file.
func TestADryRunIsTheDeed(t *testing.T) {
	its := func(m Manager) targets.Target {
		return targets.Target{Kind: "docker", Name: "web", Group: hosttest.Group(t, m.Host, "/batch"), Lasting: "docker:abc", Owner: targets.Owner{Kind: "docker"}}
	}
	set := func(r Request) func(Manager) (Change, error) {
		return func(m Manager) (Change, error) { return m.PrepareSet(t.Context(), r) }
	}
	clear := func(on ...string) func(Manager) (Change, error) {
		return func(m Manager) (Change, error) { return m.PrepareClear(t.Context(), "cgroup:/batch", on, false) }
	}
	persist := func(l limit.Limit, how limit.Hold) func(Manager) (Change, error) {
		return func(m Manager) (Change, error) {
			s := &setting{m: m, request: Request{Asked: onData(l), Persist: true, Hold: how}}
			return s, s.prepare(t.Context(), its(m))
		}
	}
	all := wbps(5e6).With(limit.RBPS, limit.PerSecond(1e6)).With(limit.RIOPS, limit.PerSecond(7)).With(limit.WIOPS, limit.PerSecond(8))
	record := saved(t, "docker:abc", "docker:web")
	for _, c := range []struct {
		name, host string
		prepare    func(Manager) (Change, error)
		files      map[string]string
		writes     int
	}{
		{"set", "v2", set(Request{Target: "cgroup:/batch", Asked: onData(wbps(5e6))}), nil, 1},
		{"set every disk", "v2", set(Request{Target: "cgroup:/batch", Asked: []limit.Asked{{Limit: all}}}), nil, 2},
		{"set, v1", "v1", set(Request{Target: "cgroup:/batch", Asked: onData(all)}), nil, 4},
		{"set v1's root", "v1", set(Request{Target: "cgroup:/", Whole: true, Asked: onData(all)}), nil, 4},
		{"lift", "v2", set(Request{Target: "cgroup:/batch", Asked: []limit.Asked{{Limit: limit.None}}}), nil, 2},
		{"clear", "v2", clear(), nil, 2},
		{"clear a disk", "v2", clear("/data"), nil, 1},
		{"clear, v1", "v1", clear(), nil, 3},
		{"keep on record", "v1", persist(all, limit.HoldKernel), nil, 5},
		{"keep more on record", "v1", persist(all, ""), record, 5},
		{"take off the record", "v1", persist(limit.None, ""), record, 5},
		{"keep on record, v2", "v2", persist(wbps(5e6), ""), nil, 2},
	} {
		m := manager(t, c.host, c.files, host.Options{})
		change, err := c.prepare(m)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		preview, err := change.Steps(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var shown []write
		for _, s := range preview.Steps {
			shown = append(shown, write{s.File, s.Line})
		}
		before := files(t, m.Host.Root)
		kernel := hosttest.Rehearse(t, m.Host)
		if change, err = c.prepare(m); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		r, err := change.Apply(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if done := did(kernel, m.Host.Root, before, files(t, m.Host.Root)); !slices.Equal(done, shown) || len(done) != c.writes {
			t.Errorf("%s: did\n%q\nshown\n%q", c.name, done, shown)
		}
		if _, err := r.Devices(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What was set is in force, and a result says so.
func TestSetAndClear(t *testing.T) {
	for _, version := range []string{"v1", "v2"} {
		m := manager(t, version, nil, host.Options{})
		hosttest.Rehearse(t, m.Host)
		change, err := m.PrepareSet(t.Context(), Request{Target: "cgroup:/alone", Asked: onData(wbps(5e6)), Hold: limit.HoldKernel})
		if err != nil {
			t.Fatal(err)
		}
		r, err := change.Apply(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		devices, err := r.Devices()
		if err != nil || len(devices) != 1 || devices[0].Device.Number != vdb || devices[0].Limit.WBPS != limit.PerSecond(5e6) || r.Path != "/alone" || r.Owner.Kind != "unknown" {
			t.Errorf("%s: %+v, %+v, %v", version, r, devices, err)
		}
		if change, err = m.PrepareClear(t.Context(), "pid:4800", nil, false); err != nil {
			t.Fatal(err)
		}
		if r, err = change.Apply(t.Context()); err != nil || len(r.Cleared) != 1 || len(r.Notes) != 1 || r.Notes[0].Text != "pid:4800: removed the limit on /dev/vdb (254:16)" {
			t.Errorf("%s: %+v, %v", version, r, err)
		}
		if devices, err = r.Devices(); err != nil || devices[0].Limit != limit.None {
			t.Errorf("%s: %+v, %v", version, devices, err)
		}
	}
}

// What the kernel refuses is taken back, with what was kept for it.
func TestARefusedSetIsTakenBack(t *testing.T) {
	m := manager(t, "v1", nil, host.Options{})
	kernel := hosttest.Rehearse(t, m.Host)
	kernel.Refuse = func(file, _ string) error {
		if strings.HasSuffix(file, "write_iops_device") {
			return syscall.ENODEV
		}
		return nil
	}
	before := files(t, m.Host.Root)
	s := &setting{m: m, request: Request{Asked: onData(wbps(5e6).With(limit.WIOPS, limit.PerSecond(7))), Persist: true}}
	its := targets.Target{Kind: "docker", Name: "web", Group: hosttest.Group(t, m.Host, "/batch"), Lasting: "docker:abc"}
	if err := s.prepare(t.Context(), its); err != nil {
		t.Fatal(err)
	}
	var refused *cgroupfs.WriteError
	if r, err := s.Apply(t.Context()); !errors.As(err, &refused) || r.Target != "" {
		t.Errorf("%+v, %v", r, err)
	}
	after := files(t, m.Host.Root)
	maps.DeleteFunc(after, func(file, _ string) bool { return strings.HasPrefix(file, m.Host.Root+"/run/weir") })
	if !maps.Equal(before, after) {
		t.Error("something is left of it")
	}
}

// A container that runs again gets its limits back; what was cleared meanwhile does not come back.
func TestRestoreARunningTarget(t *testing.T) {
	m := manager(t, "v2", saved(t, "docker:abc", "docker:web"), host.Options{})
	kernel := hosttest.Rehearse(t, m.Host)
	its := targets.Target{Kind: "docker", Name: "web", Lasting: "docker:abc", Group: hosttest.Group(t, m.Host, "/batch")}
	var r Restoring
	if err := m.restoreOne(t.Context(), Restore{}, its, limit.Asked{On: "/data", Limit: wbps(5e6)}, &r); err != nil {
		t.Fatal(err)
	}
	want := []cgroupfs.Write{{File: filepath.Join(m.Host.Root, "sys/fs/cgroup/batch/io.max"), Line: "254:16 wbps=5000000"}}
	if !slices.Equal(kernel.Writes, want) || len(r.Results) != 1 || r.Results[0].Notes != nil {
		t.Errorf("%+v, %+v", kernel.Writes, r)
	}
	// This host has no Docker: the container is not found, and its record stays.
	all, err := m.Restore(t.Context(), Restore{})
	if err != nil || len(all) != 1 || all[0].State != Failed {
		t.Errorf("%+v, %v", all, err)
	}
	if _, err := os.Stat(filepath.Join(m.Host.Root, keep.SavedPath("docker:abc"))); err != nil {
		t.Error(err)
	}
}

// A record is cleared by the name that its target had.
func TestClearARecord(t *testing.T) {
	m := manager(t, "v2", saved(t, "docker:abc", "docker:web"), host.Options{})
	hosttest.Rehearse(t, m.Host)
	change, err := m.PrepareClear(t.Context(), "docker:web", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := change.Apply(t.Context())
	if err != nil || r.Target != "docker:web" || r.Path != "" || r.Version != cgroupfs.V2 || r.Owner.Kind != "docker" || len(r.Notes) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(m.Host.Root, keep.SavedPath("docker:abc"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the record is there: %v", err)
	}
	if devices, err := r.Devices(); devices != nil || err != nil {
		t.Errorf("%+v, %v", devices, err)
	}
}

// A thread's process is found, so that a process alone in its group counts as alone.
func TestLeaderOf(t *testing.T) {
	if got := leaderOf(syscall.Gettid()); got != os.Getpid() {
		t.Errorf("%d, want %d", got, os.Getpid())
	}
	if got := leaderOf(1 << 30); got != 1<<30 {
		t.Errorf("what has ended is its own: %d", got)
	}
}
