package metrics

import (
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
)

// What is gathered is in the order that Prometheus' own library would put it into, passes its
// checks, and has the labels that are listed, whatever groups and devices are called.
func TestGatherInOrder(t *testing.T) {
	s := &watch.Snapshot{}
	for _, path := range []string{"/a", "/a.slice", "/a/b", "/a\xffb", "/a\u00ff", `/a\xffb`, "/"} {
		g := &watch.Group{Path: path, Target: "pod:prod/web", Pressure: &watch.Pressure{}, Memory: &watch.Memory{}, Paced: &watch.Paced{WBPS: 1}}
		for minor, node := range []string{"/dev/z", "/dev/b", "/dev/z", "0:5"} {
			d := watch.Device{Number: blkdev.Number{Major: 8, Minor: uint32(minor)}, Node: node, Counted: true, Limit: limit.None, Expected: &place.Expected{}}
			for _, k := range limit.Keys {
				d.Limit = d.Limit.With(k, limit.PerSecond(5))
			}
			g.Devices = append(g.Devices, d)
		}
		s.Groups = append(s.Groups, g)
	}
	got, err := gathering{s, false, "1"}.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want, err := prometheus.Gatherers{gathering{s, false, "1"}}.Gather()
	if err != nil || len(got) != len(All()) {
		t.Fatalf("%d of %d metrics, %v", len(got), len(All()), err)
	}
	if !slices.EqualFunc(got, want, func(a, b *dto.MetricFamily) bool { return a.String() == b.String() }) {
		t.Errorf("gathered %v, want %v", got, want)
	}
	for _, f := range got {
		m := All()[slices.IndexFunc(All(), func(m Metric) bool { return m.Name == f.GetName() })]
		listed := slices.Sorted(slices.Values(m.Labels))
		for _, one := range f.GetMetric() {
			var names []string
			for _, l := range one.GetLabel() {
				names = append(names, l.GetName())
			}
			if !slices.Equal(names, listed) {
				t.Errorf("%s has labels %q, want %q", m.Name, names, listed)
			}
		}
	}
}

// A pod's group, and that of each of its containers, has the pod's name and namespace.
func TestPodsHaveNames(t *testing.T) {
	s := &watch.Snapshot{Groups: []*watch.Group{{Path: "/kubepods/podX", Target: "pod:prod/web"}, {Path: "/kubepods/podX/c1", Target: "containerd:k8s.io/c1"},
		{Path: "/kubepods", Target: "cgroup:/kubepods"}, {Path: "/kubepods/podX/c1/below", Target: "cgroup:/x"}}}
	all, err := gathering{s, true, "1"}.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() != info.Name {
				continue
			}
			of := map[string]string{}
			for _, l := range m.GetLabel() {
				of[l.GetName()] = l.GetValue()
			}
			if len(of) != 3 && len(of) != 5 {
				t.Errorf("%v", of)
			}
			got[of["cgroup"]] = of["namespace"] + "/" + of["pod"]
		}
	}
	want := map[string]string{"/kubepods/podX": "prod/web", "/kubepods/podX/c1": "prod/web", "/kubepods": "/", "/kubepods/podX/c1/below": "/"}
	if !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
