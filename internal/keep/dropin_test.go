package keep

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/dropin"
	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/note"
)

func TestDropInOfAService(t *testing.T) {
	path := dropin.Path("web.service")
	h := open(t, "v1", map[string]string{path: savedText(t, limit.Asked{On: "/dev/vda", Limit: writes(1)})})
	k := Of(h, service(group(t, h)), cgroupfs.V1)
	plan, edit := keepIn(t, k, wanted(writes(5), limit.HoldPacer))
	want := []limit.Asked{{On: "/dev/vda", Limit: writes(1)}, {On: "/data", Limit: writes(5), Hold: limit.HoldPacer}}
	if got := entriesOf(t, plan.File.Text); !reflect.DeepEqual(got, want) || plan.File.Path != filepath.Join(h.Root, path) || plan.File.Own {
		t.Errorf("%+v: %v, want %v", plan.File, got, want)
	}
	if !strings.Contains(plan.File.Text, "\nExecStartPost=-+/usr/bin/weir set unit:web.service --quiet --write 5B/s --on /data --hold pacer\n") {
		t.Errorf("the drop-in is\n%s", plan.File.Text)
	}
	if edit.Before != nil || edit.After != nil {
		t.Errorf("besides the plan: %+v", edit)
	}
	if notes := k.Lasts(plan, true); len(notes) != 1 || notes[0].Level != note.Info || notes[0].Remedy.Do != fault.Clear {
		t.Errorf("%+v", notes)
	}
	// What lifts the last limit removes the file.
	plan, _ = keepIn(t, k, Wanted{Asked: []limit.Asked{{On: "/dev/vda", Limit: limit.Limit{WBPS: limit.Unlimited}}}})
	if plan.File == nil || plan.File.Text != "" {
		t.Errorf("%+v", plan.File)
	}
	if notes := k.Lasts(plan, true); len(notes) != 1 || notes[0].Remedy.Do != fault.KeepAtStart {
		t.Errorf("nothing is kept: %+v", notes)
	}
}

func TestForgetADropIn(t *testing.T) {
	path := dropin.Path("web.service")
	saved := savedText(t, limit.Asked{On: "/data", Limit: writes(1)}, limit.Asked{On: "/dev/vda", Limit: writes(2)}, limit.Asked{Limit: writes(3)})
	h := open(t, "v1", map[string]string{path: saved})
	its := service(group(t, h))
	its.Kind, its.Name = "pid", "4711" // named by a process
	k := Of(h, its, cgroupfs.V1)
	if plan, _ := forgetIn(t, k); plan.File == nil || plan.File.Text != "" || plan.File.Path != filepath.Join(h.Root, path) {
		t.Errorf("all: %+v", plan.File)
	}
	// What is on that device alone goes; what may be on it too is overruled.
	plan, _ := forgetIn(t, k, vdb.Number)
	want := []limit.Asked{{On: "/dev/vda", Limit: writes(2)}, {Limit: writes(3)}, {On: "254:16", Limit: limit.None}}
	if got := entriesOf(t, plan.File.Text); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	without := open(t, "v1", nil)
	if plan, _ := forgetIn(t, Of(without, service(group(t, without)), cgroupfs.V1)); plan.File != nil {
		t.Errorf("there is none: %+v", plan.File)
	}
}

// What weir sets again at each start of a service is kept in its drop-in: on cgroup v1, where systemd keeps no limits.
func TestKeptInADropIn(t *testing.T) {
	path := dropin.Path("web.service")
	mine, others := savedText(t, limit.Asked{On: "/data", Limit: writes(1)}), "[Service]\nNice=5\n"
	for _, c := range []struct {
		version string
		files   map[string]string
		want    string
	}{{"v1", map[string]string{path: mine}, path}, {"v1", map[string]string{path: others}, ""}, {"v1", nil, ""}, {"v2", map[string]string{path: mine}, ""}} {
		h := open(t, c.version, c.files)
		kept, err := By(t.Context(), h, service(group(t, h)))
		if in := strings.TrimPrefix(kept.File, h.Root); err != nil || in != c.want || (in != "") != (len(kept.Rules) == 1 && kept.Rules[0].Limit == writes(1)) || kept.Unknown {
			t.Errorf("%s, %v: %+v, %v; want it in %q", c.version, c.files, kept, err, c.want)
		}
	}
}

// A file that is not weir's stays, and keeps weir from writing another.
func TestADropInOfSomebodyElse(t *testing.T) {
	h := open(t, "v1", map[string]string{dropin.Path("web.service"): "[Service]\nNice=5\n"})
	k := Of(h, service(group(t, h)), cgroupfs.V1)
	var plan hold.Plan
	if _, err := k.Keep(t.Context(), wanted(writes(5), ""), &plan); err == nil || !strings.Contains(err.Error(), "move it away") || plan.File != nil {
		t.Errorf("%v, %+v", err, plan.File)
	}
	if _, err := k.Forget(t.Context(), nil, &plan); err == nil || plan.File != nil {
		t.Errorf("%v, %+v", err, plan.File)
	}
}

// Without the path of weir no unit can run it.
func TestNoProgram(t *testing.T) {
	h := hosttest.Open(t, "v1", nil, host.Options{})
	var plan hold.Plan
	if _, err := Of(h, service(group(t, h)), cgroupfs.V1).Keep(t.Context(), wanted(writes(5), ""), &plan); err == nil || plan.File != nil {
		t.Errorf("%v, %+v", err, plan.File)
	}
}
