package prove

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/look/load"
	"github.com/weir-io/weir/internal/look/why"
	"github.com/weir-io/weir/internal/note"
	"github.com/weir-io/weir/internal/targets"
)

// prepared prepares a proof on a copy of a machine.
func prepared(t *testing.T, h *host.Host, r Request) (*Trial, error) {
	t.Helper()
	trial, err := Prepare(context.Background(), h, r)
	t.Cleanup(func() {
		if err := trial.Close(); err != nil {
			t.Error(err)
		}
	})
	return trial, err
}

// remedy is what the user can do about an error.
func remedy(err error) fault.Remedy {
	var remedied *fault.Remedied
	if errors.As(err, &remedied) {
		return remedied.Remedy
	}
	return fault.Remedy{}
}

func found(t *testing.T, h *host.Host, spec string) *targets.Target {
	t.Helper()
	found, err := h.Target(context.Background(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return &found
}

// noProcesses has the views of a copy's target be this process's, and not those of processes of
// this machine.
func noProcesses() map[string]string {
	return map[string]string{"sys/fs/cgroup/batch/cgroup.procs": "", "sys/fs/cgroup/batch/night/cgroup.procs": ""}
}

// An observed target is measured on each device that it has a limit on, its own or one above.
func TestPrepareObserved(t *testing.T) {
	h := hosttest.Open(t, "v2", noProcesses(), host.Options{})
	trial, err := prepared(t, h, Request{Target: found(t, h, "cgroup:/batch/night"), Observe: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(trial.places) != 2 || len(trial.tests) != 0 || trial.report == nil || trial.version != cgroupfs.V2 {
		t.Fatalf("%+v", trial)
	}
	if trial.request.Hold != limit.HoldAuto {
		t.Errorf("buffered writes are held by %q, and nobody has asked for another than the usual", trial.request.Hold)
	}
	vdb, vda := trial.places[0], trial.places[1] // the group's own rule comes first
	if vda.Device.Node != "/dev/vda" || vdb.Device.Node != "/dev/vdb" {
		t.Fatalf("%s and %s", vda.Device.Node, vdb.Device.Node)
	}
	if n, _ := vda.Limit.Get(limit.WBPS).Number(); n != 10e6 {
		t.Errorf("the limit of the group above: %s", vda.Limit)
	}
	if n, _ := vdb.Limit.Get(limit.RBPS).Number(); n != 1000 {
		t.Errorf("the lower of two limits: %s", vdb.Limit)
	}
	var above []string
	for _, n := range trial.Notes {
		above = append(above, n.String())
	}
	if want := "note: on /dev/vda, limits of /batch apply to it too"; strings.Join(above, "|") != want {
		t.Errorf("%q, want %q", above, want)
	}
	if vda.Explained.Report == nil {
		t.Error("weir why was not asked")
	}
}

func TestPrepareRefuses(t *testing.T) {
	h := hosttest.Open(t, "v2", noProcesses(), host.Options{})
	write := limit.Limit{}.With(limit.WBPS, limit.PerSecond(1e6))
	if _, err := prepared(t, h, Request{Target: found(t, h, "cgroup:/alone"), Observe: time.Second}); remedy(err) != (fault.Remedy{Do: fault.SetFirst, Target: "cgroup:/alone"}) {
		t.Errorf("a target without a limit: %v", err)
	}
	// The copy's /data is no mount of this machine.
	trial, err := prepared(t, h, Request{Target: found(t, h, "cgroup:/batch")})
	if remedy(err).Do != fault.NameSpot || fault.ClassOf(err) != fault.NotPossible {
		t.Errorf("a target without a directory: %v", err)
	}
	if len(trial.Notes) != 2 || trial.Notes[0].Code != "no-directory" || trial.Notes[0].Remedy.Do != fault.NameOne {
		t.Errorf("each device without a directory is named: %v", trial.Notes)
	}
	var limits int
	for _, u := range trial.untried {
		if limits++; u.Remedy.Do != fault.NameOne || u.Device.Node == "" || u.Rate == 0 {
			t.Errorf("%+v", u)
		}
	}
	if limits < 2 {
		t.Errorf("the limits of each device without a directory are named: %+v", trial.untried)
	}
	var unreachable *UnreachableError
	if _, err := prepared(t, h, Request{Target: found(t, h, "cgroup:/batch"), Dirs: []string{"/none"}}); !errors.As(err, &unreachable) || unreachable.Dir != "/none" {
		t.Errorf("a directory that is not there: %v", err)
	}
	var none *load.NoDirError
	if _, err := prepared(t, h, Request{Asked: []limit.Asked{{On: "/dev/null", Limit: write}}}); !errors.As(err, &none) || fault.ClassOf(err) != fault.WrongUse {
		t.Errorf("a file instead of a directory: %v", err)
	}
	without := hosttest.Open(t, "v2", nil, host.Options{Version: cgroupfs.V1})
	if _, err := Prepare(context.Background(), without, Request{}); !fault.IsUnsupported(err) {
		t.Errorf("a host without a controller: %v", err)
	}
}

// Without a lower limit on the way, the target's own rule is what is judged, and in a group
// without the controller, the one above.
func TestLimited(t *testing.T) {
	g := groupIn(t, "/a/b/c", map[string]string{"a/cgroup.controllers": "io\n", "a/b/cgroup.controllers": "io\n", "a/b/c/cgroup.controllers": "\n"})
	b, rule := g.Parent(), cgroupfs.Binding{Device: blkdev.Number{Major: 8}, Limit: limit.None.With(limit.WBPS, limit.PerSecond(5))}
	other := rule
	other.Limit = limit.None.With(limit.WBPS, limit.PerSecond(3))
	for _, c := range []struct {
		target, inside cgroupfs.Group
		own            []cgroupfs.Binding
		want           string
	}{
		{b.Parent(), b, []cgroupfs.Binding{rule}, "/a"},
		{b.Parent(), b, []cgroupfs.Binding{other}, "/a/b"},
		{b.Parent(), b, nil, "/a/b"},
		{g, g, []cgroupfs.Binding{rule}, "/a/b"},
	} {
		got := bound{inside: c.inside, own: c.own}.limited(c.target, rule)
		if got.Path() != c.want {
			t.Errorf("%s with loads in %s: %s, want %s", c.target.Path(), c.inside.Path(), got.Path(), c.want)
		}
	}
}

func TestStand(t *testing.T) {
	p := Place{Dir: "/data"}
	var none *fault.Unsupported
	if err := p.stand(blkdev.Chain{Devices: make([]blkdev.Device, 2)}); !errors.As(err, &none) {
		t.Errorf("two devices: %v", err)
	}
	m := &blkdev.Mount{FSType: "xfs"}
	chain := blkdev.Chain{Layers: []blkdev.Layer{{Mount: m}}, Devices: []blkdev.Device{{Node: "/dev/vdb"}}}
	if err := p.stand(chain); err != nil || p.Device.Node != "/dev/vdb" || p.FS == nil || p.FS.FSType != "xfs" || p.Chain == nil {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNoRoom(t *testing.T) {
	if err := noRoom("/d", true, 1); err.Error() != "/d is mounted read-only" || remedy(err).Do != fault.NameDir {
		t.Errorf("%v, %v", err, remedy(err))
	}
	if err := noRoom("/d", false, 1<<20); err.Error() != "/d has 1.05 MB free, but a proof needs 75.5 MB" || remedy(err).Do != fault.NameOtherDir {
		t.Errorf("%v, %v", err, remedy(err))
	}
}

// A proof is as good as its worst row, and has the findings that its rows name.
func TestProof(t *testing.T) {
	p := Proof{Rows: []Row{{Judgement: Judgement{Verdict: Held}}, {Judgement: Judgement{Verdict: NotHeld}, Findings: []int{2}}}}
	if p.Verdict() != NotHeld || p.Findings() != nil {
		t.Errorf("%s, %v", p.Verdict(), p.Findings())
	}
	p.Explained = &why.Report{Findings: []why.Finding{{Number: 1, Code: "a"}, {Number: 2, Code: "b"}, {Number: 3, Code: "c"}}}
	if f := p.Findings(); len(f) != 1 || f[0].Code != "b" {
		t.Errorf("%+v", f)
	}
	if (Proof{}).Verdict() != CannotTell {
		t.Error("a proof of nothing")
	}
	s := spotOf(Place{Dir: "/data", Sole: true, FS: &blkdev.Mount{FSType: "ext4"}})
	if s.Dir != "/data" || !s.Scratch || s.FSType != "ext4" || spotOf(Place{}).FSType != "" {
		t.Errorf("%+v", s)
	}
}

// A limit that no row has tried leaves a proof without an answer, and does not excuse one that is not held.
func TestProofOfLess(t *testing.T) {
	row := func(v Verdict) []Row { return []Row{{Judgement: Judgement{Verdict: v}}} }
	less := []Untried{{Key: limit.WIOPS, Rate: 100}}
	for v, want := range map[Verdict]Verdict{Held: CannotTell, HeldAtDevice: CannotTell, CannotTell: CannotTell, NotHeld: NotHeld} {
		p := Proof{Rows: row(v), Untried: less}
		if p.Verdict() != want || p.Measured() != v {
			t.Errorf("rows are %s: %s, measured %s", v, p.Verdict(), p.Measured())
		}
	}
	if got := less[0].String(); got != "write 100 ops/s" {
		t.Errorf("%q", got)
	}
}

// Each limit that no row tries is named, with what can be done: one that cannot be tried beside
// another, one that is left out for want of time, and one that is not the neighbour's.
func TestPlanNamesTheUntried(t *testing.T) {
	h := hosttest.Open(t, "v2", map[string]string{"sys/devices/pci0000:00/block/vda/queue/logical_block_size": "512\n"}, host.Options{})
	at := Place{Dir: t.TempDir(), Device: blkdev.Device{Number: blkdev.Number{Major: 254}}, Limit: limit.None.With(limit.WBPS, limit.PerSecond(10e6)).With(limit.WIOPS, limit.PerSecond(50_000))}
	plan := func(r Request, n int) *Trial {
		r.Window, r.Short = 3*time.Second, true
		trial := &Trial{host: h, request: r}
		for range n {
			trial.places = append(trial.places, at)
		}
		if err := trial.plan(); err != nil {
			t.Fatal(err)
		}
		return trial
	}
	for _, r := range []Request{{Paths: Paths}, {Paths: Paths, All: true}} {
		if u := plan(r, 1).untried; len(u) != 1 || u[0].Key != limit.WIOPS || u[0].Rate != 50_000 || u[0].Remedy.Do != fault.ProveAlone || u[0].Device.Number != at.Device.Number {
			t.Errorf("%+v", u)
		}
	}
	at.Limit = at.Limit.With(limit.RBPS, limit.PerSecond(10e6)).With(limit.WIOPS, limit.PerSecond(500)).With(limit.RIOPS, limit.PerSecond(500))
	if u := plan(Request{Paths: Paths}, 2).untried; len(u) != 0 {
		t.Errorf("there is time for all: %+v", u)
	}
	u := plan(Request{Paths: Paths}, 5).untried
	if len(u) == 0 || u[0].Remedy.Do != fault.AllRows {
		t.Errorf("%+v", u)
	}
	if u := plan(Request{Paths: Paths, All: true}, 5).untried; len(u) != 0 {
		t.Errorf("of all rows: %+v", u)
	}
	trial := &Trial{places: []Place{at}}
	if trial.planNeighbour(); len(trial.untried) != 3 || trial.untried[0].Remedy.Do != fault.DropOther || trial.untried[0].Key == limit.WBPS {
		t.Errorf("beside a neighbour: %+v", trial.untried)
	}
}

// What is tried with less than the writer could do is noted.
func TestPlanNotesPace(t *testing.T) {
	h := hosttest.Open(t, "v2", map[string]string{"sys/devices/pci0000:00/block/vda/queue/logical_block_size": "512\n"}, host.Options{})
	for kind, paced := range map[string]bool{"btrfs": true, "ext4": false} {
		at := Place{Dir: t.TempDir(), Device: blkdev.Device{Number: blkdev.Number{Major: 254}}, FS: &blkdev.Mount{FSType: kind}, Limit: limit.None.With(limit.WBPS, limit.PerSecond(1e6))}
		trial := &Trial{host: h, request: Request{Paths: Paths, Window: 3 * time.Second}, places: []Place{at}}
		if err := trial.plan(); err != nil {
			t.Fatal(err)
		}
		if is := slices.ContainsFunc(trial.Notes, func(n note.Note) bool { return strings.Contains(n.Text, "tried with") }); is != paced || len(trial.untried) != 0 {
			t.Errorf("%s: %v, %v", kind, trial.Notes, trial.untried)
		}
	}
}

// What a short proof may take is shared by its places.
func TestPlanShortens(t *testing.T) {
	h := hosttest.Open(t, "v2", map[string]string{"sys/devices/pci0000:00/block/vda/queue/logical_block_size": "512\n"}, host.Options{})
	at := Place{Dir: t.TempDir(), Device: blkdev.Device{Number: blkdev.Number{Major: 254}}, Limit: limit.Limit{}.With(limit.WBPS, limit.PerSecond(10e6)).With(limit.RBPS, limit.PerSecond(10e6)).With(limit.WIOPS, limit.PerSecond(500)).With(limit.RIOPS, limit.PerSecond(500))}
	total := func(r Request, n int) (all time.Duration, rows int) {
		r.Paths, r.Window = Paths, time.Minute
		trial := &Trial{host: h, request: r}
		for range n {
			trial.places = append(trial.places, at)
		}
		if err := trial.plan(); err != nil {
			t.Fatal(err)
		}
		for _, tests := range trial.tests {
			for _, one := range tests {
				all, rows = all+one.For+one.Warm, rows+1
			}
		}
		if !r.All && rows+trial.Left < RowsMost {
			t.Errorf("%d rows, %d left", rows, trial.Left)
		}
		return all, rows
	}
	if took, rows := total(Request{All: true}, 1); took < time.Minute || rows <= RowsMost {
		t.Errorf("a window that was asked for: %s, %d rows", took, rows)
	}
	if took, rows := total(Request{Short: true}, 2); took > 28*time.Second || rows != 2*len(limit.Keys) {
		t.Errorf("a short proof of each limit: %s, %d rows", took, rows)
	}
	if took, rows := total(Request{Short: true}, 3); took+time.Duration(rows)*around > 28*time.Second || rows <= RowsMost || rows == 3*len(limit.Keys) {
		t.Errorf("a short proof of more limits than there is time for: %s, %d rows", took, rows)
	}
	if took, rows := total(Request{Short: true, All: true}, 1); took > 28*time.Second || rows <= RowsMost {
		t.Errorf("a short proof of all rows: %s, %d rows", took, rows)
	}
	trial := &Trial{host: h, request: Request{Paths: []load.Path{load.Buffered}, Window: time.Second}, places: []Place{at}}
	trial.places[0].Limit = limit.Limit{}.With(limit.WIOPS, limit.PerSecond(5))
	if err := trial.plan(); remedy(err).Do != fault.OtherKinds || len(trial.Notes) == 0 || trial.Notes[0].Code != "not-tried" {
		t.Errorf("no row can be tried: %v, %v", err, trial.Notes)
	}
}
