package hold

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/daemon/systemd"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/linux/cgroupfs/cgrouptest"
	"github.com/weir-io/weir/internal/state"
	"github.com/weir-io/weir/lab"
)

// A recorder is a systemd with one unit, which notes what it is asked as steps.
type recorder struct {
	manager
	steps []Step
}

func (r *recorder) dial(context.Context) (units, error) { return r, nil }

func (r *recorder) Set(ctx context.Context, unit string, persist bool, settings []systemd.Setting) error {
	for _, s := range settings {
		r.steps = append(r.steps, Step{Unit: unit, Property: s.String(), Persist: persist})
	}
	return r.manager.Set(ctx, unit, persist, settings)
}

func (r *recorder) Anchor(_ context.Context, slice string, accounting systemd.Setting) error {
	r.steps = append(r.steps, Step{Unit: systemd.AnchorOf(slice), Property: accounting.String()})
	return nil
}

func (r *recorder) Respell(_ context.Context, unit string, paths []string) error {
	for _, path := range paths {
		for _, s := range systemd.IOLimitAt(path, limit.None) {
			r.steps = append(r.steps, Step{Unit: unit, Property: s.String(), Persist: true})
		}
	}
	return nil
}

// TestStepsAreTheDeed holds the steps of those who keep limits with systemd against what systemd
// is asked and what is written: a unit's own settings, the drop-in of a scope, and that of a
// service on cgroup v1.
func TestStepsAreTheDeed(t *testing.T) {
	lab.Unit(t)
	const text = "[Service]\nExecStartPost=weir\n"
	set := []Change{{sda, limit.Limit{WBPS: limit.PerSecond(7), RIOPS: limit.PerSecond(9)}}}
	lift := []Change{{sda, limit.Limit{WBPS: limit.Unlimited}}}
	two := []systemd.PathLimit{says("/dev/sda", false, reads(3))}
	t.Setenv("XDG_RUNTIME_DIR", "/run") // for callers other than root
	for _, c := range []struct {
		name    string
		version cgroupfs.Version
		plan    Plan
		file    string // of the plan: its text before
		limits  []systemd.PathLimit
		kernel  string // what systemd writes to io.max
		steps   int
		more    []Step // of the deed alone
	}{
		{name: "a unit", version: cgroupfs.V2, plan: Plan{Unit: "x.service", Changes: set}, kernel: "8:0 rbps=max wbps=7 riops=9 wiops=max\n", steps: 2},
		{name: "a unit, for good", version: cgroupfs.V2, plan: Plan{Unit: "x.service", Changes: set, Persist: true}, kernel: "8:0 rbps=max wbps=7 riops=9 wiops=max\n", steps: 2},
		{name: "a volume that systemd goes past", version: cgroupfs.V2, plan: Plan{Unit: "x.service", Changes: set, Past: []blkdev.Number{sda}}, kernel: "8:0 rbps=max wbps=5 riops=max wiops=max\n", steps: 2},
		{name: "a unit with another name of the device", version: cgroupfs.V2, plan: Plan{Unit: "x.service", Changes: set, Persist: true}, limits: two,
			kernel: "8:0 rbps=3 wbps=7 riops=9 wiops=max\n", steps: 9},
		{name: "a scope", version: cgroupfs.V2, plan: Plan{Unit: "x.scope", Changes: set, File: &File{Text: text}}, kernel: "8:0 rbps=max wbps=7 riops=9 wiops=max\n", steps: 3},
		{name: "a scope that keeps no more", version: cgroupfs.V2, plan: Plan{Unit: "x.scope", Changes: lift, File: &File{}, Lift: true}, file: text, steps: 2},
		{name: "a unit that keeps no more", version: cgroupfs.V2, plan: Plan{Unit: "x.service", Changes: lift, Persist: true, Lift: true}, steps: 1,
			more: []Step{{Unit: "x.service", Property: "IOWriteBandwidthMax=/dev/block/8:0 infinity"}}}, // and until the next boot: the unit's own file may set one
		{name: "a group beside units", version: cgroupfs.V2, plan: Plan{Anchor: "-.slice", Changes: set}, steps: 2},
		{name: "a service, v1", version: cgroupfs.V1, plan: Plan{Account: "x.service", Anchor: "system.slice", Changes: set, File: &File{Text: text}}, steps: 5},
		{name: "a service, v1, no more", version: cgroupfs.V1, plan: Plan{Account: "x.service", Anchor: "system.slice", Changes: lift, File: &File{}, Lift: true}, file: text, steps: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{cgrouptest.V2Dir + "/x/io.max": "8:0 rbps=max wbps=5 riops=max wiops=max\n"}
			if c.version == cgroupfs.V1 {
				files = map[string]string{}
				for _, rate := range []string{"read_bps", "write_bps", "read_iops", "write_iops"} {
					files[cgrouptest.V1Dir+"/x/blkio.throttle."+rate+"_device"] = ""
				}
				files[cgrouptest.V1Dir+"/x/cgroup.procs"] = ""
			}
			h := cgrouptest.New(t, c.version, files)
			p := c.plan
			p.Group = h.Group("/x")
			if p.File != nil {
				p.File = &File{Path: filepath.Join(h.Root, "etc/systemd/system/x.d/50-weir.conf"), Text: p.File.Text}
				if c.file != "" {
					h.Write("etc/systemd/system/x.d/50-weir.conf", c.file)
				}
			}
			r := &recorder{manager: manager{limits: c.limits, text: c.kernel}}
			if p.Unit != "" {
				r.file = p.Group.File("io.max")
			}
			err := h.FS.Rehearse(func(file, line string) error {
				r.steps = append(r.steps, Step{File: file, Line: line})
				return os.WriteFile(file, []byte(kept(line)), 0o644)
			})
			if err != nil {
				t.Fatal(err)
			}
			holder := Holder{State: state.At(filepath.Join(t.TempDir(), "host")), systemd: r.dial}
			shown := holder.Steps(t.Context(), p)
			if r.steps != nil {
				t.Errorf("a dry run did %+v", r.steps)
			}
			if err := holder.Apply(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			did := r.steps
			if p.File != nil {
				written, err := textOf(p.File.Path)
				if err != nil || written == c.file {
					t.Errorf("%q, %v", written, err)
				}
				did = append(did, Step{File: p.File.Path, Line: written})
			}
			if got, want := counted(did), counted(append(slices.Clone(shown), c.more...)); !maps.Equal(got, want) || len(shown) != c.steps {
				t.Errorf("did\n%+v\nshown\n%+v", did, shown)
			}
		})
	}
}

// counted are steps without their order: systemd is asked for those for good at once.
func counted(steps []Step) map[string]int {
	all := map[string]int{}
	for _, s := range steps {
		all[fmt.Sprintf("%+v", s)]++
	}
	return all
}

// kept is what a kernel makes of a line of a rule: io.max has all four rates.
func kept(line string) string {
	device, rates, _ := strings.Cut(line, " ")
	if !strings.Contains(rates, "=") {
		return strings.TrimSuffix(device+" "+rates, device+" 0") + "\n"
	}
	all := device
	for _, key := range []string{"rbps", "wbps", "riops", "wiops"} {
		value := "max"
		for _, word := range strings.Fields(rates) {
			if its, is := strings.CutPrefix(word, key+"="); is {
				value = its
			}
		}
		all += " " + key + "=" + value
	}
	return all + "\n"
}
