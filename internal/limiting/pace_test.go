package limiting

import (
	"reflect"
	"strings"
	"testing"

	"github.com/weir-io/weir/internal/act/hold"
	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/host"
	"github.com/weir-io/weir/internal/host/hosttest"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/linux/cgroupfs"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

func TestRepaceSteps(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	its := targets.Target{Group: hosttest.Group(t, m.Host, "/batch")}
	paced := &place.Paced{WBPS: 5}
	for name, c := range map[string]struct {
		d    place.Decision
		want *hold.Pace
	}{
		"nothing": {place.Decision{}, nil},
		"escapes": {place.Decision{Escapes: paced}, &hold.Pace{Cgroup: "/batch", WBPS: 5, Escapes: true}},
		"all":     {place.Decision{Paced: paced}, &hold.Pace{Cgroup: "/batch", WBPS: 5}},
	} {
		steps, err := m.repaceSteps(its, nil, c.d)
		var last *hold.Pace
		if len(steps) > 0 {
			last = steps[len(steps)-1].Pace
		}
		if err != nil || (last == nil) != (c.want == nil) || last != nil && (last.Cgroup != c.want.Cgroup || last.WBPS != c.want.WBPS || last.Escapes != c.want.Escapes) {
			t.Errorf("%s: %+v, %v", name, steps, err)
		}
	}
	steps, err := m.repaceSteps(its, nil, place.Decision{Paced: paced})
	if err != nil || len(steps) < 2 || !strings.Contains(steps[0].Mkdir, "/batch/") {
		t.Errorf("it makes no cells: %+v, %v", steps, err)
	}
}

// A dry run of a clear shows what the pacer is asked: to release the group, or to hold what is left.
func TestPaceLeft(t *testing.T) {
	m := manager(t, "v2", nil, host.Options{})
	g := hosttest.Group(t, m.Host, "/batch")
	rules := []cgroupfs.Rule{{Device: vda, Limit: wbps(5)}, {Device: vdb, Limit: wbps(7).With(limit.RIOPS, limit.PerSecond(9))}}
	off := limit.Limit{WBPS: limit.Unlimited}
	written, escaped := &pacer.Job{Count: pacer.CountWritten}, &pacer.Job{Count: pacer.CountEscaped}
	for _, c := range []struct {
		name   string
		was    *pacer.Job
		lifted []hold.Change
		want   *hold.Pace
	}{
		{"the pacer holds nothing", nil, []hold.Change{{Device: vda, Limit: off}}, nil},
		{"all", written, []hold.Change{{Device: vda, Limit: off}, {Device: vdb, Limit: limit.None}}, &hold.Pace{Cgroup: "/batch"}},
		{"one device", written, []hold.Change{{Device: vda, Limit: off}}, &hold.Pace{Cgroup: "/batch", WBPS: 7, Devices: []blkdev.Number{vdb}}},
		{"one device, of what escapes", escaped, []hold.Change{{Device: vdb, Limit: off}}, &hold.Pace{Cgroup: "/batch", WBPS: 5, Devices: []blkdev.Number{vda}, Escapes: true}},
		{"nothing is left to lift", escaped, nil, &hold.Pace{Cgroup: "/batch", WBPS: 5, Devices: []blkdev.Number{vda, vdb}, Escapes: true}},
	} {
		var want []hold.Step
		if c.want != nil {
			want = []hold.Step{{Pace: c.want}}
		}
		if got := paceLeft(g, c.was, rules, c.lifted); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
