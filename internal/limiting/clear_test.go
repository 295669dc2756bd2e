package limiting

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/inode"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
	"github.com/weir-io/weir/internal/targets/unit"
)

func noGroup() *unit.NoGroupError {
	return &unit.NoGroupError{Unit: "web.service", Mount: "/sys/fs/cgroup/blkio"}
}

func TestClearSteps(t *testing.T) {
	for _, c := range []struct {
		name, host string
		on         []string
		want       []string
	}{
		{"v2, all", "v2", nil, []string{"sys/fs/cgroup/batch/io.max 254:0 wbps=max wiops=max", "sys/fs/cgroup/batch/io.max 254:16 rbps=max"}},
		{"v2, of one disk", "v2", []string{"/data"}, []string{"sys/fs/cgroup/batch/io.max 254:16 rbps=max"}},
		{"v1, all", "v1", nil, []string{"sys/fs/cgroup/blkio/batch/blkio.throttle.read_bps_device 254:16 0",
			"sys/fs/cgroup/blkio/batch/blkio.throttle.write_bps_device 254:0 0", "sys/fs/cgroup/blkio/batch/blkio.throttle.write_iops_device 254:0 0"}},
		{"v1, of one disk", "v1", []string{"vdb"}, []string{"sys/fs/cgroup/blkio/batch/blkio.throttle.read_bps_device 254:16 0"}},
	} {
		m := manager(t, c.host, nil, host.Options{})
		change, err := m.PrepareClear(t.Context(), "cgroup:/batch", c.on, false)
		_, got := stepsOf(t, m, change, err)
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if _, again := stepsOf(t, m, change, nil); len(again) != len(got) {
			t.Errorf("%s: asked twice, the steps are %q", c.name, again)
		}
	}
}

func TestClearRefuses(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	var remedied *fault.Remedied
	if _, err := m.PrepareClear(t.Context(), "pid:4711", nil, false); !errors.As(err, &remedied) || remedied.Remedy.Do != fault.LimitAll {
		t.Errorf("others are in the group: %v", err)
	}
	if _, err := m.PrepareClear(t.Context(), "pid:4711", nil, true); err != nil {
		t.Errorf("all are meant: %v", err)
	}
	if _, err := m.PrepareClear(t.Context(), "cgroup:/batch", []string{"/none"}, false); err == nil {
		t.Error("a place that is not there is cleared")
	}
	var notFound *targets.NotFound
	for _, on := range [][]string{nil, {"/data"}} {
		if _, err := m.PrepareClear(t.Context(), "cgroup:/none", on, false); !errors.As(err, &notFound) {
			t.Errorf("an unknown group: %v", err)
		}
	}
}

// saved is a record of a container that the host does not run.
func saved(t *testing.T, lasting, name string) map[string]string {
	t.Helper()
	r := keep.Saved{Target: lasting, Name: name, Entries: onData(wbps(1e6))}
	text, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{keep.SavedPath(lasting): text}
}

// The record of a container that is gone is cleared by the name that it had. On a copy it stays.
func TestClearAStoppedTarget(t *testing.T) {
	m := manager(t, "v2", saved(t, "docker:abc", "docker:web"), host.Options{})
	change, err := m.PrepareClear(t.Context(), "docker:web", nil, false)
	_, got := stepsOf(t, m, change, err)
	if !slices.Equal(got, []string{strings.TrimPrefix(keep.SavedPath("docker:abc"), "/")}) {
		t.Errorf("%q", got)
	}
	if _, err := change.Apply(t.Context()); err == nil || fault.IsUnsupported(err) && !isNoKind(err) {
		t.Errorf("%v", err)
	}
	if _, err := m.PrepareClear(t.Context(), "docker:other", nil, false); err == nil {
		t.Error("a target that nothing is kept for is cleared")
	}
	if _, err := m.PrepareClear(t.Context(), "docker:web", []string{"/data"}, false); err == nil {
		t.Error("of a device, without a group")
	}
}

func isNoKind(err error) bool {
	var none *targets.NoKindError
	return errors.As(err, &none)
}

// What a clear tells depends on what was in force, and on what was kept.
func TestSaid(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	g := hosttest.Group(t, m.Host, "/batch")
	placed := place.Placed{Limit: wbps(1)}
	placed.Device.Node, placed.Device.Number = "/dev/vda", vda
	forgotten := note.Infof("forgotten", "Docker no longer keeps a limit for it")
	for name, c := range map[string]struct {
		places []place.Placed
		file   *hold.File
		kept   []note.Note
		want   []string
	}{
		"nothing":            {nil, nil, nil, []string{"cgroup:/batch (cgroup /batch, v2, owner unknown) has no limit here"}},
		"a limit":            {[]place.Placed{placed}, nil, nil, []string{"cgroup:/batch: removed the limit on /dev/vda (254:0)"}},
		"a keeper's":         {nil, nil, []note.Note{forgotten}, []string{"cgroup:/batch: Docker no longer keeps a limit for it"}},
		"a file":             {nil, &hold.File{Path: "/x"}, nil, []string{"cgroup:/batch: removed /x, which set its limits at each start"}},
		"a part of a file":   {nil, &hold.File{Path: "/x", Text: "y"}, nil, nil},
		"a limit and a kept": {[]place.Placed{placed}, nil, []note.Note{forgotten}, []string{"cgroup:/batch: Docker no longer keeps a limit for it", "cgroup:/batch: removed the limit on /dev/vda (254:0)"}},
	} {
		its := &clearing{m: m, target: targets.Target{Kind: "cgroup", Name: "/batch", Group: g, Owner: targets.Owner{Kind: "unknown"}}, places: c.places, plan: hold.Plan{File: c.file}}
		var got []string
		for _, n := range its.said(c.kept) {
			got = append(got, n.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// What is in force now is read back, with what was decided or removed.
func TestDevicesOfAResult(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	r := resultOf(targets.Target{Kind: "cgroup", Name: "/batch", Group: hosttest.Group(t, m.Host, "/batch")})
	placed := place.Placed{Limit: wbps(1)}
	placed.Device.Number = vda
	r.Cleared = []place.Placed{placed}
	devices, err := r.Devices()
	if err != nil || len(devices) != 1 || devices[0].Limit.WBPS != limit.PerSecond(10e6) || devices[0].Expected.Buffered.Mechanism != "" {
		t.Errorf("%+v, %v", devices, err)
	}
	r.Cleared, r.Decided.Places = nil, []place.Expected{{Placed: placed, Expectation: place.Expectation{Buffered: place.By{Mechanism: place.Writeback}}}}
	devices, err = r.Devices()
	if err != nil || len(devices) != 1 || devices[0].Expected.Buffered.Mechanism != place.Writeback {
		t.Errorf("%+v, %v", devices, err)
	}
	// systemd takes the controller away with the last limit of a slice's units.
	without := resultOf(targets.Target{Kind: "cgroup", Name: "/", Group: hosttest.Group(t, m.Host, "/")})
	without.Cleared = []place.Placed{placed}
	if devices, err := without.Devices(); err != nil || len(devices) != 1 || devices[0].Limit != limit.None {
		t.Errorf("%+v, %v", devices, err)
	}
}

// Files of other groups are named, with what moves them.
func TestForeignNotes(t *testing.T) {
	its := targets.Target{Kind: "docker", Name: "web"}
	file := inode.File{Path: "/data/a"}
	mend := fault.Remedy{Do: fault.Mend, Target: "docker:web"}
	for name, c := range map[string]struct {
		files []inode.File
		paced bool
		err   error
		level note.Level
		has   string
		do    fault.Remedy
	}{
		"none":      {nil, false, nil, "", "", fault.Remedy{}},
		"unknown":   {nil, false, errors.New("no BPF"), note.Notice, "cannot tell whether docker:web writes to other groups' files: no BPF", fault.Remedy{}},
		"one":       {[]inode.File{file}, false, nil, note.Warning, "buffered writes to /data/a are NOT held", mend},
		"two":       {[]inode.File{file, file}, false, nil, note.Warning, "/data/a and 1 other file are NOT held", mend},
		"three":     {[]inode.File{file, file, file}, false, nil, note.Warning, "/data/a and 2 other files are NOT held", mend},
		"the pacer": {[]inode.File{file}, true, nil, note.Notice, "weir's pacer is expected to hold that, and pauses docker:web", mend},
	} {
		notes := foreignNotes(its, c.files, c.paced, c.err)
		if c.level == "" && notes == nil {
			continue
		}
		if len(notes) != 1 || notes[0].Level != c.level || !strings.Contains(notes[0].Text, c.has) || notes[0].Remedy != c.do {
			t.Errorf("%s: %+v", name, notes)
		}
	}
	m := manager(t, "v2", nil, host.Options{})
	if notes := m.foreign(t.Context(), targets.Target{Group: hosttest.Group(t, m.Host, "/batch")}, nil, place.Decision{}); notes != nil {
		t.Errorf("only containers are asked about: %+v", notes)
	}
}

func TestRestore(t *testing.T) {
	m := manager(t, "v2", saved(t, "docker:abc", "docker:web"), host.Options{})
	if all, err := m.Restore(t.Context(), Restore{}); !fault.IsUnsupported(err) || all != nil {
		t.Errorf("a copy is written: %v, %v", all, err)
	}
	for _, names := range [][]string{nil, {"docker:abc"}, {"docker:web"}} {
		all, err := m.Restore(t.Context(), Restore{Targets: names, Dry: true})
		if err != nil || len(all) != 1 || all[0].Target != "docker:abc" || all[0].Name != "docker:web" || !slices.Equal(all[0].Kept, onData(wbps(1e6))) {
			t.Errorf("%v: %+v, %v", names, all, err)
			continue
		}
		if all[0].State != Failed || !isNoKind(all[0].Err) || all[0].Steps() != nil { // this host has no Docker
			t.Errorf("%v: %+v", names, all[0])
		}
	}
	if all, err := m.Restore(t.Context(), Restore{Targets: []string{"cgroup:/batch"}, Dry: true}); all == nil || len(all) > 0 || err == nil {
		t.Errorf("nothing is saved for it: %+v, %v", all, err)
	}
	var remedied *fault.Remedied
	if _, err := m.Restore(t.Context(), Restore{Targets: []string{"cgroup:/batch"}, Dry: true}); !errors.As(err, &remedied) || remedied.Remedy != (fault.Remedy{Do: fault.Save, Target: "cgroup:/batch"}) {
		t.Errorf("%v", err)
	}
}

// One saved limit is set; one whose place is gone keeps no other from it.
func TestRestoreOne(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	its := targets.Target{Kind: "docker", Name: "web", Lasting: "docker:abc", Group: hosttest.Group(t, m.Host, "/batch")}
	var r Restoring
	if err := m.restoreOne(t.Context(), Restore{Dry: true}, its, limit.Asked{On: "/none", Limit: wbps(1)}, &r); err == nil {
		t.Error("a place that is gone is limited")
	}
	if err := m.restoreOne(t.Context(), Restore{Dry: true}, its, limit.Asked{On: "/data", Limit: wbps(5e6), Hold: limit.HoldKernel}, &r); err != nil {
		t.Error(err)
	}
	if got := linesOf(m.Host.Root, r.Steps()); len(r.Previews) != 2 || !slices.Equal(got, []string{"sys/fs/cgroup/batch/io.max 254:16 wbps=5000000"}) {
		t.Errorf("%q, %+v", got, r)
	}
	if err := m.restoreOne(t.Context(), Restore{}, its, limit.Asked{On: "/data", Limit: wbps(5e6)}, &r); !fault.IsUnsupported(err) || len(r.Results) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}

// A step of keeping that fails says that the limit is in force.
func TestAfterRules(t *testing.T) {
	broken := errors.New("broken")
	a := afterRules{failing{broken}, targets.Target{Kind: "docker", Name: "web"}}
	if _, err := a.Do(t.Context()); !errors.Is(err, broken) || err.Error() != "set docker:web: the limit is in force now, but a restart loses it: broken" {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (failing) Steps(context.Context) ([]hold.Step, error) { return nil, nil }
func (f failing) Do(context.Context) (keep.Done, error)    { return keep.Done{}, f.err }
