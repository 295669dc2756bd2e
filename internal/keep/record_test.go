package keep

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
)

func TestRecord(t *testing.T) {
	scopeFile := dropin.Path("docker-" + id + ".scope")
	old := Saved{Target: "docker:" + id, Name: "docker:old", Entries: []limit.Asked{{On: "/dev/vda", Limit: writes(1)}}}
	text, err := old.Text()
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, "v1", map[string]string{SavedPath(old.Target): text, scopeFile: savedText(t, limit.Asked{On: "/dev/vda", Limit: writes(1)})})
	k := Of(h, container(group(t, h), ""), cgroupfs.V1)
	plan, edit := keepIn(t, k, wanted(writes(5), limit.HoldAuto))
	if plan.File == nil || !plan.File.Own || plan.File.Path != RecordPath(h, old.Target) {
		t.Fatalf("%+v", plan.File)
	}
	for _, want := range []string{`"name":"docker:web"`, `"host":"unix:///x"`, `"on":"/dev/vda"`, `"on":"/data"`, `"hold":"auto"`} {
		if !strings.Contains(plan.File.Text, want) {
			t.Errorf("%s is not in %s", want, plan.File.Text)
		}
	}
	steps, err := StepsOf(t.Context(), edit.After)
	if err != nil || len(steps) != 1 || steps[0].File != filepath.Join(h.Root, scopeFile) || edit.Before != nil {
		t.Errorf("what kept other limits goes: %+v, %v", steps, err)
	}
	if notes := k.Lasts(plan, true); len(notes) != 1 || notes[0].Remedy.Do != fault.RestoreBoot {
		t.Errorf("%+v", notes)
	}
	if notes := k.Lasts(hold.Plan{}, false); len(notes) != 1 || notes[0].Remedy.Do != fault.KeepOnRecord || notes[0].Level != note.Warning {
		t.Errorf("%+v", notes)
	}
	plan, edit = forgetIn(t, k)
	if plan.File == nil || plan.File.Text != "" || len(edit.After) != 1 {
		t.Errorf("%+v, %+v", plan.File, edit)
	}
	plan, edit = forgetIn(t, k, vdb.Number)
	if plan.File == nil || !strings.Contains(plan.File.Text, "/dev/vda") || edit.After != nil {
		t.Errorf("of another device: %+v, %+v", plan.File, edit)
	}
	if in, err := By(t.Context(), h, container(group(t, h), "")); err != nil || in.File != RecordPath(h, old.Target) {
		t.Errorf("kept: %+v, %v", in, err)
	}
}

// A damaged record keeps nobody from setting limits or clearing them: it is told of, and replaced or
// removed. Only what is left of it for other devices stays.
func TestADamagedRecord(t *testing.T) {
	path := SavedPath("docker:" + id)
	for _, text := range []string{"", "{", `{"target":"docker:other"}`, "[]"} {
		h := open(t, "v1", map[string]string{path: text})
		its := container(group(t, h), "")
		k := Of(h, its, cgroupfs.V1)
		tells := func(what string, notes []note.Note, has string) {
			t.Helper()
			if len(notes) != 1 || notes[0].Code != "record-damaged" || notes[0].Level != note.Warning || !strings.Contains(notes[0].Text, has) || !strings.Contains(notes[0].Text, filepath.Join(h.Root, path)) {
				t.Errorf("%q: %s: %+v", text, what, notes)
			}
		}
		plan, edit := keepIn(t, k, wanted(writes(5), limit.HoldAuto))
		if tells("kept", edit.Notes, "are replaced"); plan.File == nil || !strings.Contains(plan.File.Text, `"target":"docker:`+id) || !strings.Contains(plan.File.Text, `"on":"/data"`) {
			t.Errorf("%q: %+v", text, plan.File)
		}
		plan, edit = forgetIn(t, k)
		if tells("forgotten", edit.Notes, "are removed"); plan.File == nil || plan.File.Text != "" || plan.File.Path != RecordPath(h, "docker:"+id) {
			t.Errorf("%q: %+v", text, plan.File)
		}
		plan, edit = forgetIn(t, k, vdb.Number)
		if tells("forgotten of one device", edit.Notes, "stay"); plan.File != nil {
			t.Errorf("%q: %+v", text, plan.File)
		}
		r, notes, err := Recorded(h, its)
		if tells("shown", notes, "a restart loses them"); err != nil || len(r.Entries) != 0 {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
		if in, err := By(t.Context(), h, its); err != nil || in.File != "" {
			t.Errorf("%q: it is kept: %+v, %v", text, in, err)
		}
	}
	// Where another keeper has the target by now, the record goes with the other files.
	h := open(t, "v2", map[string]string{path: "{"})
	_, edit := keepIn(t, Of(h, container(group(t, h), "docker-"+id+".scope"), cgroupfs.V2), wanted(writes(5), ""))
	steps, err := StepsOf(t.Context(), edit.After)
	if err != nil || len(steps) != 1 || steps[0].File != RecordPath(h, "docker:"+id) {
		t.Errorf("%+v, %v", steps, err)
	}
}

func TestScope(t *testing.T) {
	unit := "docker-" + id + ".scope"
	r := Saved{Target: "docker:" + id, Entries: []limit.Asked{{On: "/data", Limit: writes(1)}}}
	text, err := r.Text()
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, "v2", map[string]string{SavedPath(r.Target): text})
	its := container(group(t, h), unit)
	k := Of(h, its, cgroupfs.V2)
	plan, edit := keepIn(t, k, wanted(writes(5), ""))
	if plan.File == nil || plan.File.Own || !strings.Contains(plan.File.Text, "\n[Scope]\nIOWriteBandwidthMax=") || plan.File.Path != filepath.Join(h.Root, dropin.Path(unit)) {
		t.Fatalf("%+v", plan.File)
	}
	steps, err := StepsOf(t.Context(), edit.After)
	if err != nil || len(steps) != 1 || steps[0].File != RecordPath(h, r.Target) {
		t.Errorf("the record goes: %+v, %v", steps, err)
	}
	if notes := k.Lasts(plan, true); len(notes) != 1 || notes[0].Remedy.Do != fault.Clear {
		t.Errorf("%+v", notes)
	}
	if notes := k.Lasts(hold.Plan{}, false); len(notes) != 1 || notes[0].Remedy.Do != fault.Keep {
		t.Errorf("%+v", notes)
	}
	if err := os.MkdirAll(filepath.Dir(plan.File.Path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(plan.File.Path, []byte(plan.File.Text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, only := range [][]blkdev.Number{nil, {vdb.Number}} {
		if plan, _ := forgetIn(t, k, only...); plan.File == nil || plan.File.Text != "" {
			t.Errorf("%v: %+v", only, plan.File)
		}
	}
	if plan, _ := forgetIn(t, k, vda.Number); plan.File == nil || !strings.Contains(plan.File.Text, "IOWriteBandwidthMax=") {
		t.Errorf("another device: %+v", plan.File)
	}
	// The record counts first, then the drop-in.
	if err := os.Remove(RecordPath(h, r.Target)); err != nil {
		t.Fatal(err)
	}
	if in, err := By(t.Context(), h, its); err != nil || in.File != plan.File.Path || in.Unknown || len(in.Rules) != 1 || in.Rules[0].Device != vdb.Number {
		t.Errorf("kept: %+v, %v", in, err)
	}
}

// The drop-in of a scope names a disk so that it is the same one after a boot, where it can, and
// says so where it cannot. A number that an older weir has written there goes.
func TestScopeNamesDisksForGood(t *testing.T) {
	const lasting = "/dev/disk/by-id/virtio-data"
	file := dropin.Path("docker-" + id + ".scope")
	gone := blkdev.Device{Number: blkdev.Number{Major: 254, Minor: 99}, Node: "/dev/vdz"}
	older := []limit.Asked{{On: "/dev/block/254:16", Limit: limit.Limit{RBPS: limit.PerSecond(7)}.Overlay(writes(6))}, {On: "/dev/block/254:99", Limit: writes(1)}}
	text, err := dropin.ScopeText("docker:web", older, func(limit.Asked) []string { return nil })
	if err != nil {
		t.Fatal(err)
	}
	h := open(t, "v2", map[string]string{file: text})
	link := filepath.Join(h.Root, lasting)
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink("../../vdb", link)); err != nil {
		t.Fatal(err)
	}
	its := container(group(t, h), "docker-"+id+".scope")
	k := Of(h, its, cgroupfs.V2)
	plan, edit := keepIn(t, k, wanted(writes(5), ""))
	if strings.Contains(plan.File.Text, "254:16") || !strings.Contains(plan.File.Text, "\nIOWriteBandwidthMax="+lasting+" 5\n") || !strings.Contains(plan.File.Text, "\nIOReadBandwidthMax="+lasting+" 7\n") || len(edit.Notes) != 0 {
		t.Errorf("%s\n%+v", plan.File.Text, edit.Notes)
	}
	if err := os.WriteFile(plan.File.Path, []byte(plan.File.Text), 0o644); err != nil {
		t.Fatal(err)
	}
	if in, err := By(t.Context(), h, its); err != nil || !in.Unknown || len(in.Rules) != 1 || in.Rules[0].Device != vdb.Number {
		t.Errorf("kept: %+v, %v", in, err)
	}
	if plan, _ := forgetIn(t, k, vdb.Number); strings.Contains(plan.File.Text, lasting) || !strings.Contains(plan.File.Text, "254:99") {
		t.Errorf("%s", plan.File.Text)
	}
	if plan, _ := forgetIn(t, k, gone.Number); !strings.Contains(plan.File.Text, lasting) || strings.Contains(plan.File.Text, "254:99") {
		t.Errorf("of a disk that is gone: %s", plan.File.Text)
	}
	for l, notes := range map[limit.Limit]int{writes(3): 1, {WBPS: limit.Unlimited}: 0} {
		w := wanted(l, "")
		w.Places[0].Device = gone
		_, edit = keepIn(t, k, w)
		if len(edit.Notes) != notes {
			t.Errorf("%s: %v", l, edit.Notes)
		}
		for _, n := range edit.Notes {
			if n.Level != note.Warning || n.Remedy != (fault.Remedy{Do: fault.SetAgain, Target: "docker:web"}) || !strings.Contains(n.Text, "254:99, which may be another disk") {
				t.Errorf("%+v", n)
			}
		}
	}
}
