package metrics

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/weir-io/weir/internal/act/pacer"
	"github.com/weir-io/weir/internal/act/quota"
	"github.com/weir-io/weir/internal/agent"
	"github.com/weir-io/weir/internal/api"
	"github.com/weir-io/weir/internal/limit"
	"github.com/weir-io/weir/internal/linux/blkdev"
	"github.com/weir-io/weir/internal/look/watch"
	"github.com/weir-io/weir/internal/place"
	"github.com/weir-io/weir/internal/targets"
)

// What is gathered is in the order that Prometheus' own library would put it into, passes its
// checks, and has the labels that are listed, whatever groups and devices are called.
func TestGatherInOrder(t *testing.T) {
	s := &watch.Snapshot{}
	for _, path := range []string{"/a", "/a.slice", "/a/b", "/a\xffb", "/a\u00ff", `/a\xffb`, "/"} {
		g := &watch.Group{Path: path, Target: "pod:prod/web", InPod: targets.InPod{Namespace: "prod", Pod: "web", Container: "main"}, Pressure: &watch.Pressure{}, Memory: &watch.Memory{}, Paced: &watch.Paced{WBPS: 1}}
		for minor, node := range []string{"/dev/z", "/dev/b", "/dev/z", "0:5"} {
			d := watch.Device{Number: blkdev.Number{Major: 8, Minor: uint32(minor)}, Node: node, Counted: true, Limit: limit.None, Expected: &place.Expected{}}
			for _, k := range limit.Keys {
				d.Limit = d.Limit.With(k, limit.PerSecond(5))
			}
			g.Devices = append(g.Devices, d)
		}
		s.Groups = append(s.Groups, g)
	}
	quotas := []quota.Status{{Mount: "/srv", Project: 9, FSType: "xfs", Bounds: quota.Bounds{Bytes: 1, Files: 1}}, {Mount: "/srv", Project: 10, FSType: "xfs"}}
	counts := api.AgentCountsOf(agent.Counts{Repaired: 3})
	held := map[limitOf]bool{}
	for _, g := range s.Groups {
		for _, d := range g.Devices {
			held[limitOf{g.Path, d.Number, "write"}], held[limitOf{g.Path, d.Number, "read"}] = true, false
		}
	}
	sums := map[string]pacer.Sum{"/a/b": {Paused: time.Second, Escaped: map[blkdev.Number]uint64{{Major: 8}: 1, {Major: 8, Minor: 2}: 2, {Major: 9}: 3}}}
	plans := map[string]string{}
	for _, g := range s.Groups {
		plans[g.Path] = "small\xff"
	}
	g := gathering{s, held, false, &counts, quotas, sums, plans, "1"}
	got, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	want, err := prometheus.Gatherers{g}.Gather()
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

// A pod's group, and that of each of its containers, has the pod's name and namespace; that of a running
// container has its name too, whether its pod's group has any I/O or not.
func TestPodsHaveNames(t *testing.T) {
	web := func(container string) targets.InPod {
		return targets.InPod{Namespace: "prod", Pod: "web", Container: container}
	}
	s := &watch.Snapshot{Groups: []*watch.Group{{Path: "/kubepods/podX", Target: "pod:prod/web"}, {Path: "/kubepods/podX/c1", Target: "containerd:k8s.io/c1", InPod: web("main")},
		{Path: "/kubepods/podX/pause", Target: "containerd:k8s.io/pause"}, {Path: "/kubepods/podY/c2", Target: "cgroup:/x", InPod: web("a\xff\"\n")},
		{Path: "/kubepods", Target: "cgroup:/kubepods"}, {Path: "/kubepods/podX/c1/below", Target: "cgroup:/x"}}}
	status, text := get(t, Options{Feed: NewFeed(&still{s: s}, 0)}.Handler(), Route+"?groups=all")
	if status != http.StatusOK {
		t.Fatalf("%d: %s", status, text)
	}
	got := parse(t, text)
	maps.DeleteFunc(got, func(series string, _ float64) bool { return !strings.HasPrefix(series, info.Name) })
	want := page{}
	for _, labels := range []string{
		"cgroup=/kubepods/podX,namespace=prod,owner=,pod=web,target=pod:prod/web",
		"cgroup=/kubepods/podX/c1,container=main,namespace=prod,owner=,pod=web,target=containerd:k8s.io/c1",
		"cgroup=/kubepods/podX/pause,namespace=prod,owner=,pod=web,target=containerd:k8s.io/pause",
		`cgroup=/kubepods/podY/c2,container=a\xff\"\n,namespace=prod,owner=,pod=web,target=cgroup:/x`,
		"cgroup=/kubepods,owner=,target=cgroup:/kubepods",
		"cgroup=/kubepods/podX/c1/below,owner=,target=cgroup:/x",
	} {
		want[info.Name+"{"+labels+"}"] = 1
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A group that has a plan says which, in the one metric with names.
func TestPlansHaveNames(t *testing.T) {
	g := gathering{all: true, plans: map[string]string{"/a": "small"}, snapshot: &watch.Snapshot{Groups: []*watch.Group{{Path: "/a", Target: "docker:a"}, {Path: "/b", Target: "docker:b"}}}}
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			of := map[string]string{}
			for _, l := range m.GetLabel() {
				of[l.GetName()] = l.GetValue()
			}
			plan, is := of[planLabel]
			if is && f.GetName() != info.Name {
				t.Errorf("%s has a plan", f.GetName())
			}
			if f.GetName() == info.Name {
				got[of[targetLabel]] = plan
				if is != (plan != "") {
					t.Errorf("%s has an empty plan", of[targetLabel])
				}
			}
		}
	}
	if want := map[string]string{"docker:a": "small", "docker:b": ""}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
