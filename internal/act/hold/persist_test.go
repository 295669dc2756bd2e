package hold

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/base/rawtext"
	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

func TestAUnitIsSetForGood(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	p.Persist = true
	m := &manager{file: p.Group.File("io.max"), text: "8:0 rbps=max wbps=7 riops=9 wiops=max\n"}
	if err := p.applyUnit(t.Context(), dir, m.dial); err != nil {
		t.Fatal(err)
	}
	if want := [][]string{{"persist", "IOWriteBandwidthMax=/dev/disk/by-id/disk-8:0 7", "IOReadIOPSMax=/dev/disk/by-id/disk-8:0 9"}}; !reflect.DeepEqual(m.sets, want) {
		t.Errorf("set %q, want %q", m.sets, want)
	}
	// What is lifted is lifted for good and until the next boot, and nothing of it stays.
	m.sets, m.text = nil, ""
	p.Changes, p.Lift = []Change{{sda, limit.Limit{WBPS: limit.Unlimited}}}, true
	if err := p.applyUnit(t.Context(), dir, m.dial); err != nil {
		t.Fatal(err)
	}
	if want := [][]string{{"persist", "IOWriteBandwidthMax=/dev/block/8:0 infinity"}, {"IOWriteBandwidthMax=/dev/block/8:0 infinity"}, {"tidy"}}; !reflect.DeepEqual(m.sets, want) {
		t.Errorf("set %q, want %q", m.sets, want)
	}
	if n := records(t, dir); n != 0 {
		t.Errorf("%d records left", n)
	}
}

// A weir was killed after systemd took its change for good. One rate was kept so before,
// the other was set until the next boot only.
func TestAChangeForGoodIsTakenBackToWhatItWas(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	p.Persist = true
	before := []systemd.PathLimit{{Path: "/dev/sda", Devices: []blkdev.Number{sda}, Limit: writes(5).With(limit.RIOPS, limit.PerSecond(6))}}
	entry, err := journalOf(p)
	if err != nil {
		t.Fatal(err)
	}
	entry.Settings, entry.Persist, entry.Unkept = p.unasked(before).settings, true, []limit.Key{limit.RBPS, limit.RIOPS, limit.WIOPS}
	record, err := dir.New(journalKind, entry)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Leave(); err != nil {
		t.Fatal(err)
	}
	m := &manager{limits: []systemd.PathLimit{{Path: "/dev/sda", Devices: []blkdev.Number{sda}, Limit: writes(7).With(limit.RIOPS, limit.PerSecond(9))}}}
	undoOn(t, dir, p, m.dial)
	if want := [][]string{{"persist", "IOWriteBandwidthMax=/dev/sda 5"}, {"IOReadIOPSMax=/dev/sda 6"}, {"forget [rbps riops wiops]"}}; !reflect.DeepEqual(m.sets, want) {
		t.Errorf("set %q, want %q", m.sets, want)
	}
	if n := records(t, dir); n != 0 {
		t.Errorf("%d records left", n)
	}
}

func dropInFixture(t *testing.T, before string) (Plan, state.Dir, string) {
	t.Helper()
	p, dir := unitFixture(t)
	path := filepath.Join(t.TempDir(), "x.service.d", "50-weir.conf")
	if before != "" {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(before), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	p.Unit, p.Changes, p.File = "", nil, &File{Path: path, Text: "[Service]\n"}
	return p, dir, path
}

func TestADropInIsWrittenWholeAndTakenBack(t *testing.T) {
	lab.Unit(t)
	for _, before := range []string{"", "# before\n"} {
		p, dir, path := dropInFixture(t, before)
		f, err := journalOfFile(*p.File)
		if err != nil {
			t.Fatal(err)
		}
		m := &manager{}
		if err := f.apply(t.Context(), m.dial); err != nil {
			t.Fatal(err)
		}
		if text, err := textOf(path); text != "[Service]\n" || err != nil {
			t.Errorf("the drop-in is %q, %v", text, err)
		}
		if !reflect.DeepEqual(m.sets, [][]string{{"reload"}}) {
			t.Errorf("asked systemd for %q", m.sets)
		}
		// Killed now, or before the drop-in took its name.
		record, err := dir.New(journalKind, journal{Version: p.Group.Hierarchy().Version, Group: rawtext.Text(p.Group.Path()), File: f})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(record.Leave(), os.WriteFile(f.New, []byte("[Serv"), 0o644)); err != nil {
			t.Fatal(err)
		}
		undoOn(t, dir, p, m.dial)
		if text, err := textOf(path); text != before || err != nil {
			t.Errorf("taken back, the drop-in is %q, %v; want %q", text, err, before)
		}
		left, err := filepath.Glob(filepath.Dir(path) + "/*")
		if err != nil || len(left) != strings.Count(before, "\n") {
			t.Errorf("left: %q, %v", left, err)
		}
		if _, err := os.Stat(filepath.Dir(path)); before == "" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there", filepath.Dir(path))
		}
		if n := records(t, dir); n != 0 {
			t.Errorf("%d records left", n)
		}
	}
}

func textOf(path string) (string, error) { return journalFile{Path: path}.read() }

func TestADropInThatSomebodyChangedIsLeft(t *testing.T) {
	lab.Unit(t)
	p, _, path := dropInFixture(t, "# before\n")
	f, err := journalOfFile(*p.File)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("# theirs\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.revert(unreachable); err != nil {
		t.Error(err)
	}
	if text, err := textOf(path); text != "# theirs\n" || err != nil {
		t.Errorf("the drop-in is %q, %v", text, err)
	}
}

// What a scope's next start is to read is written when systemd has taken the change, and
// taken back with it.
func TestAUnitsFileGoesWithItsSettings(t *testing.T) {
	lab.Unit(t)
	p, dir := unitFixture(t)
	path := filepath.Join(t.TempDir(), "x.scope.d", "40-weir.conf")
	p.File = &File{Path: path, Text: "[Scope]\n"}
	held := "8:0 rbps=max wbps=7 riops=9 wiops=max\n"
	m := &manager{file: p.Group.File("io.max"), text: held}
	if err := p.applyUnit(t.Context(), dir, m.dial); err != nil {
		t.Fatal(err)
	}
	set := []string{"IOWriteBandwidthMax=/dev/block/8:0 7", "IOReadIOPSMax=/dev/block/8:0 9"}
	if want := [][]string{set, {"reload"}}; !reflect.DeepEqual(m.sets, want) {
		t.Errorf("set %q, want %q", m.sets, want)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "[Scope]\n" {
		t.Errorf("the file has %q, %v", text, err)
	}
	if steps := p.Steps(); len(steps) != 3 || steps[2] != (Step{File: path, Line: "[Scope]\n"}) {
		t.Errorf("steps %+v", steps)
	}

	p, dir = unitFixture(t)
	below := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(below, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.File = &File{Path: filepath.Join(below, "40-weir.conf"), Text: "[Scope]\n"} // it cannot be written
	m = &manager{file: p.Group.File("io.max"), text: held, limits: []systemd.PathLimit{{Path: "/dev/block/8:0", Devices: []blkdev.Number{sda}, Limit: writes(5)}}}
	if err := p.applyUnit(t.Context(), dir, m.dial); err == nil {
		t.Error("a file that cannot be written is no error")
	}
	if slices.ContainsFunc(m.sets, func(s []string) bool { return s[0] == "reload" }) {
		t.Errorf("systemd was to read what is not there: %q", m.sets)
	}
	if now, err := p.Group.Rule(sda); err != nil || now.WBPS != limit.PerSecond(5) {
		t.Errorf("the rule is %s, %v, want what it was", now, err)
	}
}
