package hold

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

var sda = blkdev.Number{Major: 8}

// A manager is a systemd with one unit. It keeps settings as lines, and writes the
// unit's io.max with each change if it has one.
type manager struct {
	limits  []systemd.PathLimit
	sets    [][]string
	refuses error
	file    string
	text    string      // what it writes to file
	kept    []limit.Key // over boots
}

func (m *manager) IOLimits(context.Context, string) ([]systemd.PathLimit, error) {
	return m.limits, nil
}

func (m *manager) Anchor(_ context.Context, slice string, accounting systemd.Setting) error {
	m.sets = append(m.sets, []string{"anchor " + slice + " " + accounting.String()})
	return m.refuses
}

func (m *manager) Set(_ context.Context, _ string, persist bool, settings []systemd.Setting) error {
	if m.refuses != nil {
		return m.refuses
	}
	var set []string
	if persist {
		set = append(set, "persist")
	}
	for _, s := range settings {
		set = append(set, s.String())
	}
	m.sets = append(m.sets, set)
	if m.file == "" {
		return nil
	}
	return os.WriteFile(m.file, []byte(m.text), 0o644)
}

func (m *manager) Kept(string) ([]limit.Key, error) { return m.kept, nil }

func (m *manager) Forget(_ context.Context, _ string, keys []limit.Key) error {
	m.sets = append(m.sets, []string{fmt.Sprint("forget ", keys)})
	return m.refuses
}

func (m *manager) Tidy(context.Context, string) error {
	m.sets = append(m.sets, []string{"tidy"})
	return m.refuses
}

func (*manager) Lasting(_ context.Context, dev blkdev.Number) (string, error) {
	return "/dev/disk/by-id/disk-" + dev.String(), nil
}

func (m *manager) Respell(_ context.Context, _ string, paths []string) error {
	m.sets = append(m.sets, append([]string{"forget"}, paths...))
	return m.refuses
}

func (m *manager) Reload(context.Context) error {
	m.sets = append(m.sets, []string{"reload"})
	return m.refuses
}

func (*manager) Close() error { return nil }

func (m *manager) dial(context.Context) (units, error) { return m, nil }

func unreachable(context.Context) (units, error) { return nil, errors.New("no systemd") }

// unitFixture is a unit's group with one rule, in files, and a plan that changes it.
func unitFixture(t *testing.T) (Plan, state.Dir) {
	t.Helper()
	g := fixture(t, cgroupfs.V2, map[string]string{"sys/fs/cgroup/x/io.max": "8:0 rbps=max wbps=5 riops=max wiops=max\n"})
	p := Plan{Group: g, Unit: "x.service", Changes: []Change{{sda, limit.Limit{WBPS: limit.PerSecond(7), RIOPS: limit.PerSecond(9)}}}}
	t.Setenv("XDG_RUNTIME_DIR", "/run") // for callers other than root
	return p, state.At(filepath.Join(t.TempDir(), "host"))
}

func records(t *testing.T, dir state.Dir) int {
	t.Helper()
	n := 0
	if err := state.Sweep(dir, journalKind, func(journal) error { n++; return state.ErrKeep }); err != nil {
		t.Fatal(err)
	}
	return n
}

func writes(wbps uint64) limit.Limit { return limit.None.With(limit.WBPS, limit.PerSecond(wbps)) }

func TestAUnitIsSetByThePathsItHas(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	m := &manager{file: p.Group.File("io.max"), text: "8:0 rbps=max wbps=7 riops=9 wiops=max\n", limits: []systemd.PathLimit{
		{Path: "/dev/sdb", Devices: []blkdev.Number{{Major: 8, Minor: 16}}, Limit: writes(1)},
		{Path: "/dev/mapper/root", Devices: []blkdev.Number{{Major: 254}, sda}, Limit: writes(2)},
		{Path: "/data", Devices: []blkdev.Number{sda}, Limit: writes(5)},
	}}
	if err := p.applyUnit(t.Context(), dir, m.dial); err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"IOWriteBandwidthMax=/dev/mapper/root 7", "IOReadIOPSMax=/dev/mapper/root 9", "IOWriteBandwidthMax=/data 7", "IOReadIOPSMax=/data 9"}, {"forget", "/dev/mapper/root"}}
	if !reflect.DeepEqual(m.sets, want) {
		t.Errorf("set %q, want %q", m.sets, want)
	}
	if n := records(t, dir); n != 0 {
		t.Errorf("%d records left", n)
	}
}

// systemd has changed the unit, and the kernel does not have the rule; on a fixture
// weir cannot write it either.
func TestAUnitChangeThatFailsIsTakenBack(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	m := &manager{limits: []systemd.PathLimit{{Path: "/dev/sda", Devices: []blkdev.Number{sda}, Limit: writes(5)}}}
	dials := 0
	err := p.applyUnit(t.Context(), dir, func(context.Context) (units, error) {
		if dials++; dials == 2 { // to take it back
			m.limits[0].Limit = writes(7).With(limit.RIOPS, limit.PerSecond(9))
		}
		return m, nil
	})
	if !fault.IsUnsupported(err) {
		t.Fatalf("applyUnit: %v; want that the fixture is not written", err)
	}
	want := [][]string{{"IOWriteBandwidthMax=/dev/sda 7", "IOReadIOPSMax=/dev/sda 9"}, {"IOWriteBandwidthMax=/dev/sda 5", "IOReadIOPSMax=/dev/sda infinity"}}
	if !reflect.DeepEqual(m.sets, want) {
		t.Errorf("set %q, want %q", m.sets, want)
	}
	if n := records(t, dir); n != 0 {
		t.Errorf("%d records left", n)
	}
}

func TestARefusalLeavesNothing(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	m := &manager{refuses: fs.ErrPermission}
	if err := p.applyUnit(t.Context(), dir, m.dial); err == nil || err.Error() != fs.ErrPermission.Error() {
		t.Errorf("applyUnit: %v, want the refusal alone", err)
	}
	if n := records(t, dir); n != 0 {
		t.Errorf("%d records left", n)
	}
}

// abandon leaves a record of the plan, as a weir that is killed does.
func abandon(t *testing.T, p Plan, dir state.Dir, has []systemd.PathLimit) {
	t.Helper()
	entry, err := journalOf(p)
	if err != nil {
		t.Fatal(err)
	}
	entry.Settings = p.unasked(has).settings
	record, err := dir.New(journalKind, entry)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Leave(); err != nil {
		t.Fatal(err)
	}
}

func undoOn(t *testing.T, dir state.Dir, p Plan, connect dialer) {
	t.Helper()
	if err := (Holder{State: dir}).undo(hierarchiesOf(t, p.Group), connect); err != nil {
		t.Error(err)
	}
}

// hierarchiesOf opens the host of files that a group is on.
func hierarchiesOf(t *testing.T, g cgroupfs.Group) *cgroupfs.FS {
	t.Helper()
	root, _, _ := strings.Cut(g.Dir(), "/sys/fs/cgroup")
	hierarchies, err := cgroupfs.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hierarchies.Close() })
	return hierarchies
}

func TestAUnitChangeOfADeadWeirIsTakenBack(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	abandon(t, p, dir, nil)
	undoOn(t, dir, p, unreachable)
	if n := records(t, dir); n != 1 {
		t.Fatalf("%d records while systemd cannot be reached, want 1", n)
	}
	// Somebody has set another rate of operations since.
	m := &manager{limits: []systemd.PathLimit{{Path: "/dev/block/8:0", Devices: []blkdev.Number{sda}, Limit: writes(7).With(limit.RIOPS, limit.PerSecond(8))}}}
	undoOn(t, dir, p, m.dial)
	if want := [][]string{{"IOWriteBandwidthMax=/dev/block/8:0 infinity"}}; !reflect.DeepEqual(m.sets, want) {
		t.Errorf("set %q, want %q", m.sets, want)
	}
	if n := records(t, dir); n != 0 {
		t.Errorf("%d records left", n)
	}
}

func TestAUnitThatIsGoneHasNothingToTakeBack(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	p.Changes[0].Limit = limit.Limit{WBPS: limit.Unlimited}
	abandon(t, p, dir, []systemd.PathLimit{{Path: "/dev/sda", Devices: []blkdev.Number{sda}, Limit: writes(5)}})
	undoOn(t, dir, p, (&manager{refuses: fs.ErrNotExist}).dial)
	if n := records(t, dir); n != 0 {
		t.Errorf("%d records left", n)
	}
}

// Of what reads back differently, only what the kernel makes of the change's own value is
// taken back: anything else is somebody's who has set it meanwhile.
func TestAChangeThatFailsLeavesWhatOthersSet(t *testing.T) {
	lab.Unit(t)
	p, _ := unitFixture(t)
	file := p.Group.File("io.max")
	rule := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("8:0 "+text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rule("rbps=max wbps=4 riops=9 wiops=max")
	p.Changes = []Change{{sda, limit.Limit{WBPS: limit.PerSecond(5), RIOPS: limit.PerSecond(5e9)}}}
	entry, err := journalOf(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		now    string
		writes bool
	}{
		{"rbps=max wbps=4 riops=9 wiops=max", false},
		{"rbps=max wbps=6 riops=9 wiops=max", false},
		{"rbps=max wbps=max riops=9 wiops=max", false},
		{"rbps=max wbps=6 riops=8 wiops=max", false},
		{"rbps=max wbps=5 riops=9 wiops=max", true},
		{"rbps=max wbps=6 riops=max wiops=max", true}, // the kernel has no room for 5e9
	} {
		rule(c.now)
		// A fixture refuses what would be written.
		if err := entry.revert(p.Group); fault.IsUnsupported(err) != c.writes {
			t.Errorf("revert of %s: %v", c.now, err)
		}
	}
}

func TestAUnitKeepsItsGroup(t *testing.T) {
	lab.Unit(t)
	m := &manager{file: filepath.Join(t.TempDir(), "unused")}
	if err := account(t.Context(), "x.service", m.dial); err != nil {
		t.Fatal(err)
	}
	if want := [][]string{{"BlockIOAccounting=true"}}; !reflect.DeepEqual(m.sets, want) {
		t.Errorf("set %q, want %q", m.sets, want)
	}
	m.refuses = fs.ErrNotExist
	if err := account(t.Context(), "gone.service", m.dial); err != nil {
		t.Errorf("a unit that systemd does not know: %v", err)
	}
	m.refuses = fs.ErrPermission
	if err := account(t.Context(), "x.service", m.dial); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a refusal: %v", err)
	}
	p := Plan{Group: fixture(t, cgroupfs.V1, nil),
		Account: "x.service", Changes: []Change{{sda, writes(7)}}}
	if got, want := p.Steps()[0], (Step{Unit: "x.service", Property: "BlockIOAccounting=true"}); got != want {
		t.Errorf("the first step is %+v, want %+v", got, want)
	}
	p.Anchor = systemd.SystemSlice
	if got, want := p.Steps()[0], (Step{Unit: "system-weir.slice", Property: "BlockIOAccounting=true"}); got != want {
		t.Errorf("the first step is %+v, want %+v", got, want)
	}
	beside := Plan{Group: fixture(t, cgroupfs.V2, nil), Anchor: systemd.RootSlice, Changes: p.Changes}
	if got, want := beside.Steps()[0], (Step{Unit: "weir.slice", Property: "IOAccounting=true"}); got != want {
		t.Errorf("on v2 the first step is %+v, want %+v", got, want)
	}
	for _, p := range []Plan{p, beside} {
		p.Lift = true
		if steps := p.Steps(); len(steps) == 0 || slices.ContainsFunc(steps, func(s Step) bool { return s.Unit != "" }) {
			t.Errorf("lifting a limit takes %+v", steps)
		}
	}
}
