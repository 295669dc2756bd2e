package space

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/volume"
	"github.com/weir-io/weir/internal/fault"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/lab"
)

// volumesOf are the volumes of a copy of a machine whose vdb has bounds on its dirty pages.
func volumesOf(t *testing.T, name string) Volumes {
	t.Helper()
	h := hosttest.Open(t, name, map[string]string{
		"sys/class/bdi/254:16/max_ratio": "100\n", "sys/class/bdi/254:16/max_ratio_fine": "1000000\n",
		"sys/class/bdi/254:16/max_bytes": "0\n", "sys/class/bdi/254:16/strict_limit": "0\n", "proc/swaps": "Filename\n",
	}, host.Options{})
	io, err := h.IO()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Volumes{h, volume.Store{Dir: filepath.Join(dir, "weir/volumes"), State: h.State, Holder: h.Holder(), Devices: h.Devices(), Kernel: h.Kernel(), IO: io, Undo: func() error { return nil }}}
}

// The steps of a volume have those of its targets. Before it is mounted its device has no number,
// so the command that sets the limit then is in their place.
func TestStepsOfTargets(t *testing.T) {
	lab.Unit(t)
	l := limit.Limit{WBPS: limit.PerSecond(5e6)}
	v := volumesOf(t, "v2")
	steps, err := v.CreateSteps(t.Context(), volume.Spec{What: "data", Size: 16 << 20, FS: "ext4", Limit: l, For: []string{"cgroup:/batch"}})
	if err != nil {
		t.Fatal(err)
	}
	mount := filepath.Join(v.store.Dir, "data")
	if last := steps[len(steps)-1]; last.Call != "do what this does: weir set cgroup:/batch --write 5MB/s --on "+mount {
		t.Errorf("after it is made: %+v", last)
	}
	if _, err := os.Lstat(v.store.Dir); err == nil {
		t.Error("a dry run has made the directory of volumes")
	}
	if _, err := v.CreateSteps(t.Context(), volume.Spec{What: "data", Size: 16 << 20, FS: "ext4", For: []string{"cgroup:/none"}}); fault.ClassOf(err) != fault.NotFound {
		t.Errorf("for a target that is not there: %v", err)
	}
	steps, err = v.AdoptSteps(t.Context(), "/data", l, []string{"cgroup:/batch"})
	if err != nil || !strings.HasSuffix(steps[len(steps)-1].File, "/batch/io.max") || steps[len(steps)-1].Line != "254:16 wbps=5000000" {
		t.Fatalf("%+v, %v", steps, err)
	}
	kernel := hosttest.Rehearse(t, v.Host)
	all := v.LimitTargets(t.Context(), Volume{Volume: volume.Volume{Mount: "/data", For: []string{"cgroup:/batch"}}}, l, false)
	if len(all) != 1 || all[0].Err != nil || len(kernel.Writes) != 1 || (hold.Step{File: kernel.Writes[0].File, Line: kernel.Writes[0].Line}) != steps[len(steps)-1] {
		t.Errorf("done is %+v, %+v", all, kernel.Writes)
	}
}

// What is shown of a change of a mount that is adopted is what it does, for its targets too.
func TestSetStepsAreTheDeed(t *testing.T) {
	lab.Unit(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root: weir reads only records of volumes that belong to root")
	}
	v := volumesOf(t, "v1")
	kernel := hosttest.Rehearse(t, v.Host)
	if _, err := v.Adopt(t.Context(), "/data", limit.Limit{WBPS: limit.PerSecond(5e6)}, nil); err != nil {
		t.Fatal(err)
	}
	kernel.Writes = nil
	l := limit.Limit{RBPS: limit.PerSecond(6e6)} // beside the rate that the mount has
	shown, err := v.SetSteps(t.Context(), "data", l, []string{"cgroup:/batch"})
	if err != nil || kernel.Writes != nil {
		t.Fatalf("%v; a dry run wrote %+v", err, kernel.Writes)
	}
	made, err := v.Set(t.Context(), "data", l, []string{"cgroup:/batch"})
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range v.LimitTargets(t.Context(), made.Volume, made.Limit.Overlay(l), false) {
		if one.Err != nil {
			t.Fatal(one.Err)
		}
	}
	var did []hold.Step
	for _, w := range kernel.Writes {
		did = append(did, hold.Step{File: w.File, Line: w.Line})
	}
	rules := slices.DeleteFunc(shown, func(s hold.Step) bool { return !strings.Contains(s.File, "blkio.throttle") })
	if !slices.Equal(did, rules) || len(did) != 3 {
		t.Errorf("did\n%+v\nshown\n%+v", did, rules)
	}
	for verb, steps := range map[string]func() ([]hold.Step, error){
		"up":     func() ([]hold.Step, error) { return v.UpSteps(t.Context(), "data") },
		"delete": func() ([]hold.Step, error) { return v.DeleteSteps(t.Context(), "data") },
		"forget": func() ([]hold.Step, error) { return v.ForgetSteps(t.Context(), "data") },
	} {
		if all, err := steps(); err != nil || len(all) == 0 {
			t.Errorf("%s: %+v, %v", verb, all, err)
		}
	}
}
