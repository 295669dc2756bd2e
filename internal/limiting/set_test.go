package limiting

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/keep"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

func wbps(n uint64) limit.Limit { return limit.Limit{WBPS: limit.PerSecond(n)} }

func onData(l limit.Limit) []limit.Asked { return []limit.Asked{{On: "/data", Limit: l}} }

// linesOf are steps as text: "FILE LINE", without the root.
func linesOf(root string, steps []hold.Step) (lines []string) {
	for _, s := range steps {
		lines = append(lines, strings.TrimSpace(strings.TrimPrefix(s.File, root+"/")+" "+s.Line+s.Property+s.Command))
	}
	return lines
}

func stepsOf(t *testing.T, m Manager, c Change, err error) (Preview, []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	p, err := c.Steps(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p, linesOf(m.Host.Root, p.Steps)
}

func TestSetSteps(t *testing.T) {
	for _, c := range []struct {
		host string
		r    Request
		want []string
	}{
		{"v2", Request{Target: "cgroup:/batch", Asked: onData(wbps(5e6))}, []string{"sys/fs/cgroup/batch/io.max 254:16 wbps=5000000"}},
		{"v2", Request{Target: "cgroup:/batch", Asked: []limit.Asked{{Limit: wbps(5e6)}}}, []string{"sys/fs/cgroup/batch/io.max 254:0 wbps=5000000", "sys/fs/cgroup/batch/io.max 254:16 wbps=5000000"}},
		{"v2", Request{Target: "pid:4800", Asked: onData(wbps(5e6))}, []string{"sys/fs/cgroup/alone/io.max 254:16 wbps=5000000"}},
		{"v2", Request{Target: "pid:4711", Whole: true, Asked: onData(limit.Limit{WBPS: limit.Unlimited})}, []string{"sys/fs/cgroup/batch/io.max 254:16 wbps=max"}},
		{"v1", Request{Target: "cgroup:/batch", Asked: onData(wbps(5e6).With(limit.RIOPS, limit.PerSecond(7)))}, []string{
			"sys/fs/cgroup/blkio/batch/blkio.throttle.write_bps_device 254:16 5000000", "sys/fs/cgroup/blkio/batch/blkio.throttle.read_iops_device 254:16 7"}},
		{"v1", Request{Target: "cgroup:/", Whole: true, Asked: onData(wbps(5e6))}, []string{"sys/fs/cgroup/blkio/blkio.throttle.write_bps_device 254:16 5000000"}},
	} {
		m := manager(t, c.host, nil, host.Options{})
		change, err := m.PrepareSet(t.Context(), c.r)
		p, got := stepsOf(t, m, change, err)
		slices.Sort(got)
		slices.Sort(c.want)
		if !slices.Equal(got, c.want) || len(p.Decided.Places) == 0 {
			t.Errorf("%s, %+v: %q, want %q", c.host, c.r, got, c.want)
		}
	}
}

// What is refused has a class, says what to do as data, and changes nothing.
func TestSetRefuses(t *testing.T) {
	var notFound *targets.NotFound
	var refused *keep.Refused
	for _, c := range []struct {
		name  string
		host  string
		r     Request
		class fault.Class
		do    fault.Do
		as    any
	}{
		{"no limit", "v2", Request{Target: "cgroup:/batch"}, fault.WrongUse, "", nil},
		{"no such group", "v2", Request{Target: "cgroup:/none", Asked: onData(wbps(1))}, fault.NotFound, "", &notFound},
		{"others are in the group", "v2", Request{Target: "pid:4711", Asked: onData(wbps(1))}, fault.NotDone, fault.LimitAll, nil},
		{"v1's root", "v1", Request{Target: "cgroup:/", Asked: onData(wbps(1))}, fault.NotDone, fault.LimitRoot, nil},
		{"nothing keeps it", "v2", Request{Target: "cgroup:/batch", Persist: true, Asked: onData(wbps(1))}, fault.WrongUse, "", &refused},
		{"no such place", "v2", Request{Target: "cgroup:/batch", Asked: []limit.Asked{{On: "/none", Limit: wbps(1)}}}, fault.NotFound, "", nil},
		{"twice on a device", "v2", Request{Target: "cgroup:/batch", Asked: append(onData(wbps(1)), limit.Asked{On: "vdb", Limit: wbps(2)})}, fault.WrongUse, "", nil},
		{"the pacer cannot run", "v1", Request{Target: "cgroup:/batch", Hold: limit.HoldPacer, Asked: onData(wbps(1))}, fault.NotPossible, fault.AskHost, nil},
	} {
		m := manager(t, c.host, nil, host.Options{})
		before := files(t, m.Host.Root)
		change, err := m.PrepareSet(t.Context(), c.r)
		if err == nil { // what depends on what is in force
			_, err = change.Steps(t.Context())
		}
		var remedied *fault.Remedied
		do := fault.Do("")
		if errors.As(err, &remedied) {
			do = remedied.Remedy.Do
		}
		if err == nil || fault.ClassOf(err) != c.class || do != c.do || c.as != nil && !errors.As(err, c.as) {
			t.Errorf("%s: %v, class %d, to do %q", c.name, err, fault.ClassOf(err), do)
		}
		if !maps.Equal(before, files(t, m.Host.Root)) {
			t.Errorf("%s: something has changed", c.name)
		}
	}
}

// Nothing of a copy is changed, and what was noted until then is in the result.
func TestApplyToACopy(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	before := files(t, m.Host.Root)
	set, err := m.PrepareSet(t.Context(), Request{Target: "cgroup:/batch", Asked: onData(wbps(1))})
	if err != nil {
		t.Fatal(err)
	}
	clear, err := m.PrepareClear(t.Context(), "cgroup:/batch", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []Change{set, clear} {
		if r, err := c.Apply(t.Context()); !fault.IsUnsupported(err) || r.Target != "" || r.Notes != nil {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if !maps.Equal(before, files(t, m.Host.Root)) {
		t.Error("something has changed")
	}
}

// files are all regular files below a directory, with their contents.
func files(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Disks that are left out are noted, also if there is no other.
func TestNotesOfDisks(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	g := hosttest.Group(t, m.Host, "/batch")
	s := &setting{m: m, request: Request{Asked: []limit.Asked{{Limit: wbps(1)}}}}
	if err := s.prepare(t.Context(), targets.Target{Kind: "vm", Name: "db", Group: g, Disks: []string{"/dev/vdb", "/dev/none"}}); err != nil {
		t.Fatal(err)
	}
	if len(s.places) != 1 || s.places[0].Device.Number != vdb || len(s.notes) != 1 || s.notes[0].Level != note.Notice {
		t.Errorf("%+v, %+v", s.places, s.notes)
	}
	s = &setting{m: m, request: Request{Asked: []limit.Asked{{Limit: wbps(1)}}}}
	err := s.prepare(t.Context(), targets.Target{Kind: "vm", Name: "db", Group: g, Disks: []string{"/dev/none"}})
	if !fault.IsUnsupported(err) || len(NotesOf(err)) != 1 {
		t.Errorf("%v, %+v", err, NotesOf(err))
	}
	if notes := NotesOf(errors.New("another")); notes != nil {
		t.Errorf("%+v", notes)
	}
}

// A container's limits are kept in weir's record on v1: the record is a step of the same change.
func TestSetPersistSteps(t *testing.T) {
	m := manager(t, "v1", nil, host.Options{})
	its := targets.Target{Kind: "docker", Name: "web", Group: hosttest.Group(t, m.Host, "/batch"), Lasting: "docker:abc", Owner: targets.Owner{Kind: "docker"}}
	s := &setting{m: m, request: Request{Asked: onData(wbps(5e6)), Persist: true, Hold: limit.HoldKernel}}
	if err := s.prepare(t.Context(), its); err != nil {
		t.Fatal(err)
	}
	_, got := stepsOf(t, m, s, nil)
	if len(got) != 2 || !strings.HasPrefix(got[1], keep.SavedPath("docker:abc")[1:]+` {"target":"docker:abc","name":"docker:web"`) || !strings.Contains(got[1], `"hold":"kernel"`) {
		t.Errorf("%q", got)
	}
}

// Where the keeper starts no pacer, a limit that it is asked for cannot be kept.
func TestThePacerEnds(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	its := targets.Target{Kind: "docker", Name: "web", Group: hosttest.Group(t, m.Host, "/batch"), Owner: targets.Owner{Kind: "docker", Unit: "docker-abc.scope"}}
	paced := place.Decision{Paced: &place.Paced{WBPS: 1}}
	escapes := place.Decision{Escapes: &place.Paced{WBPS: 1}}
	engine := its
	engine.Lasting, engine.Record = "docker:abc", &targets.Record{By: "Docker", Updates: true}
	record := its
	record.Lasting, record.Owner.Unit = "docker:abc", ""
	for _, c := range []struct {
		name    string
		target  targets.Target
		what    place.Decision
		persist bool
		want    fault.Do
		level   note.Level
	}{
		{"a scope", its, paced, true, fault.SetAgain, note.Notice},
		{"it is not kept", its, paced, false, "", ""},
		{"nothing is paced", its, place.Decision{}, true, "", ""},
		{"an engine", engine, paced, true, fault.HoldAgain, note.Warning},
		{"an engine, what escapes", engine, escapes, true, fault.HoldForeign, note.Notice},
		{"a record", record, paced, true, "", ""},
	} {
		s := &setting{m: m, target: c.target, request: Request{Persist: c.persist}}
		d := &decided{setting: s, keeper: s.keeper(), what: c.what}
		notes := d.unpaced()
		if c.want == "" && notes == nil {
			continue
		}
		if len(notes) != 1 || notes[0].Remedy != (fault.Remedy{Do: c.want, Target: c.target.String()}) || notes[0].Level != c.level {
			t.Errorf("%s: %+v", c.name, notes)
		}
	}
}

// Who writes the rules, and what systemd is asked beside them, depends on whose group it is.
func TestPlanFor(t *testing.T) {
	systemd := map[string]string{"run/systemd/system/x": "", "sys/fs/cgroup/system.slice/web.service/cgroup.procs": "", "sys/fs/cgroup/blkio/system.slice/web.service/cgroup.procs": ""}
	for _, c := range []struct {
		name, host, path        string
		owner                   targets.Owner
		runs                    bool
		unit, account, anchored string
	}{
		{"v2, a unit", "v2", "/system.slice/web.service", targets.Owner{Kind: "systemd", Unit: "web.service"}, true, "web.service", "", ""},
		{"v2, beside the units", "v2", "/batch", targets.Owner{Kind: "unknown"}, true, "", "", "-.slice"},
		{"v2, without systemd", "v2", "/batch", targets.Owner{Kind: "unknown"}, false, "", "", ""},
		{"v1, a unit", "v1", "/system.slice/web.service", targets.Owner{Kind: "systemd", Unit: "web.service"}, true, "", "web.service", "system.slice"},
		{"v1, a container in a scope", "v1", "/system.slice/web.service", targets.Owner{Kind: "docker", Unit: "web.service"}, true, "", "", ""},
		{"v1, another's group", "v1", "/batch", targets.Owner{Kind: "unknown"}, true, "", "", "system.slice"},
		{"v1, without systemd", "v1", "/batch", targets.Owner{Kind: "unknown"}, false, "", "", ""},
	} {
		extra := map[string]string{}
		if c.runs {
			extra = systemd
		} else {
			maps.Copy(extra, systemd)
			delete(extra, "run/systemd/system/x")
		}
		m := manager(t, c.host, extra, host.Options{})
		plan := m.planFor(targets.Target{Group: hosttest.Group(t, m.Host, c.path), Owner: c.owner}, nil)
		if plan.Unit != c.unit || plan.Account != c.account || plan.Anchor != c.anchored {
			t.Errorf("%s: unit %q, account %q, anchor %q", c.name, plan.Unit, plan.Account, plan.Anchor)
		}
	}
}

// A process in another slice than the anchor's is moved by systemd with the units of that slice.
func TestStrays(t *testing.T) {
	extra := map[string]string{"run/systemd/system/x": "", "proc/4711/cgroup": "3:name=systemd:/user.slice/x\n2:memory:/batch\n1:blkio:/batch\n"}
	for path := range maps.Keys(extra) {
		if strings.HasPrefix(path, "proc") {
			extra["sys/fs/cgroup/systemd/user.slice/x/cgroup.procs"] = ""
		}
	}
	m := manager(t, "v1", extra, host.Options{})
	notes := m.strays(targets.Target{Group: hosttest.Group(t, m.Host, "/batch")})
	if len(notes) != 1 || notes[0].Level != note.Warning || !strings.Contains(notes[0].Text, "the first unit in user.slice asks") {
		t.Errorf("%+v", notes)
	}
	if notes := manager(t, "v1", nil, host.Options{}).strays(targets.Target{Group: hosttest.Group(t, m.Host, "/batch")}); notes != nil {
		t.Errorf("without systemd: %+v", notes)
	}
}

// Memory that fills in time and drains slowly is warned of; where it cannot fill, it is not.
func TestDrain(t *testing.T) {
	const mem = "sys/fs/cgroup/batch/memory.max"
	m := manager(t, "v2", map[string]string{mem: "67108864\n", "sys/fs/cgroup/batch/memory.high": "max\n", "sys/fs/cgroup/batch/memory.current": "0\n"}, host.Options{})
	g := hosttest.Group(t, m.Host, "/batch")
	if got := MemoryOf(g); got != 64<<20 {
		t.Errorf("the group may use %d", got)
	}
	if got := MemoryOf(hosttest.Group(t, m.Host, "/batch/night")); got != 64<<20 {
		t.Errorf("the group below may use %d: the bound above counts", got)
	}
	if got := MemoryOf(hosttest.Group(t, m.Host, "/alone")); got != 0 {
		t.Errorf("another may use %d", got)
	}
	expected := func(by place.Mechanism, n uint64) place.Decision {
		d := place.Decision{Places: []place.Expected{{Placed: place.Placed{Limit: wbps(n)}, Expectation: place.Expectation{Buffered: place.By{Mechanism: by}}}}}
		d.Places[0].Device.Number, d.Places[0].Device.Node = vda, "/dev/vda"
		return d
	}
	for name, c := range map[string]struct {
		memory uint64
		d      place.Decision
		want   int
	}{
		"slow":            {64 << 20, expected(place.Writeback, 1e6), 1},
		"fast":            {64 << 20, expected(place.Writeback, 1e12), 0},
		"the pacer":       {64 << 20, expected(place.Pacer, 1e6), 0},
		"without a bound": {0, expected(place.Writeback, 1e6), 0},
	} {
		notes := Drain(m.Host, g, c.memory, c.d)
		if len(notes) != c.want || c.want > 0 && notes[0].Remedy != (fault.Remedy{Do: fault.AskWhy, Target: "cgroup:/batch"}) {
			t.Errorf("%s: %+v", name, notes)
		}
	}
}

func TestUnitWithoutGroup(t *testing.T) {
	m := manager(t, "v1", map[string]string{"run/systemd/system/x": ""}, host.Options{})
	s := &setting{m: m, request: Request{Target: "unit:web.service", Asked: onData(wbps(1)), Persist: true}}
	s.none = noGroup()
	if err := s.prepareUnit(t.Context()); err != nil || s.target.String() != "unit:web.service" || s.version() != cgroupfs.V1 {
		t.Errorf("%v, %+v", err, s.target)
	}
	if _, err := s.Steps(t.Context()); err == nil || !strings.Contains(err.Error(), "not known before that") {
		t.Errorf("the files are not known: %v", err)
	}
	s.request.Asked = []limit.Asked{{On: "/none", Limit: wbps(1)}}
	if err := s.prepareUnit(context.Background()); err == nil {
		t.Error("a refused set makes systemd make a group")
	}
	if path := filepath.Join(m.Host.Root, dropin.Path("web.service")); exists(path) {
		t.Errorf("%s was written", path)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
